"""`ganlab runs show`: prints the state of one run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ganlab import Run, RunError
from ganlab.commands import RunsPath, counted, in_bytes, in_time, of_last_metrics, say, say_json
from ganlab.files import line
from ganlab.runs import (
    SHOWN_BY,
    changes_of,
    checkpoint_steps,
    read_fields,
    size_on_disk,
    started_at,
    status_of,
)
from ganlab.version import DISTRIBUTION
from ganlab_runs.growth import Growth, growth

# More figures than fit on a screen are left to --json.
_MOST = 30
_MOST_GROWN = 5
_MOST_LISTED = 4


@click.command("show")
@click.argument("run", metavar="RUN", type=RunsPath())
@click.option("--json", "as_json", is_flag=True, help="Print all of run.json and the other known facts as JSON.")
def show(run: Path, as_json: bool) -> None:
    """Shows the state of one run.

    Prints its progress, settings, last figures, problems and origin.
    """
    shown = Run(run)
    info, problems = read_fields(run)
    if problems and not as_json:
        raise next(iter(problems.values()))
    known = {
        "path": str(run),
        "status": status_of(run, info),
        "bytes": size_on_disk(run),
        "checkpoints": checkpoint_steps(run),
        "changes": [asdict(change) for change in changes_of(info)],
    }
    if as_json:
        if known["status"] == "diverged":
            known["grown"] = [asdict(one) for one in _grown(shown) or []]
        if problems:
            known["problems"] = list(map(str, problems.values()))
        say_json({**info, **known})
        return
    say("\n".join(line(text.removesuffix(SHOWN_BY)) for text in _lines(shown, info, known)))


def _lines(run: Run, info: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[str]:
    yield str(run.path)
    at, step = info.get("diverged_at"), info.get("step")
    ended = f"from step {at} on, seen after step {step}" if isinstance(at, int) and at != step else f"at step {step}"
    yield f"{known['status']} {ended} of {info.get('steps')}{_after(info)}"
    yield (
        f"begun {started_at(run.path, dict(info)):%Y-%m-%d %H:%M} UTC; seed {info.get('seed')}; "
        f"{info.get('strategy')}, {counted(info.get('replicas') or 1, 'replica')}"
    )
    steps = known["checkpoints"]
    kept = f"checkpoints of step {', '.join(map(str, steps))}" if steps else "no checkpoint"
    best = info.get("best")
    if best:
        kept += f"; best by {best['metric']}: step {best['step']}"
    yield f"{in_bytes(known['bytes'])} on disk; {kept}"
    for title, lines in (
        ("Why it ended", list(_reason(run, info, known["status"]))),
        ("Changed midway", list(_changes(info))),
        ("Settings", list(_settings(run))),
        (of_last_metrics(info), list(_figures(info.get("metrics", {})))),
        ("Last evaluation", list(_figures(info.get("evaluation", {})))),
        ("Last diagnostics", list(_figures(info.get("diagnostics", {})))),
        ("Health", _sentences(info.get("health"), "nothing is wrong")),
        ("Warnings", _sentences(info.get("warnings"))),
        ("From", [*_parents(info), *_origin(info.get("provenance", {}))]),
    ):
        if lines:
            yield from ("", f"{title}:", *(f"  {text}" for text in lines))


def _reason(run: Run, info: Mapping[str, Any], status: str) -> Iterator[str]:
    """Yields the reason why a run failed or diverged, and the metrics that grew before it did."""
    if status not in ("failed", "diverged"):
        return
    error = info.get("error")
    if error:
        yield from error.splitlines()
    else:
        yield "run.json does not record the reason."
    if status != "diverged":
        return
    grown = _grown(run)
    if grown is None:
        yield "It is unknown which metrics grew: metrics.jsonl cannot be read."
    elif grown and not any(math.isfinite(one.first) for one in grown):
        first = ", ".join(one.tag for one in grown[:_MOST_GROWN])
        yield f"Already not finite in the first row, at step {grown[0].first_step}: {first}"
    elif grown:
        yield "Metrics that grew most in the logged rows:"
        yield from (f"  {one}" for one in grown[:_MOST_GROWN])
    else:
        has_rows = next(run.iter_metrics(), None) is not None
        why = "no metric is ten times what it was in the first one" if has_rows else "the run ended before the first"
        yield f"No row shows what grew: {why}. Log more rows: --param experiment.log_every=1"
    yield "What to try first: docs/divergence.md"


def _grown(run: Run) -> list[Growth] | None:
    try:
        return growth(run.iter_metrics())
    except (RunError, OSError):
        return None


def _after(info: Mapping[str, Any]) -> str:
    seconds = info.get("wall_seconds", 0)
    return f", after {in_time(seconds, units=1)} of training" if seconds >= 1 else ""


def _changes(info: Mapping[str, Any]) -> Iterator[str]:
    for change in changes_of(info):
        yield f"at step {change.step}:"
        yield from (f"  {line}" for line in change.what)


def _settings(run: Run) -> Iterator[str]:
    """The settings in config.gin; operative.gin also has the defaults."""
    try:
        yield from (text for text in run.config.splitlines() if text.strip())
    except RunError as error:
        yield str(error)


def _figures(figures: Mapping[str, float]) -> Iterator[str]:
    width = max(map(len, figures), default=0)
    for name, value in list(figures.items())[:_MOST]:
        yield f"{name:<{width}}  {value:.6g}"
    if len(figures) > _MOST:
        yield f"and {len(figures) - _MOST} more: --json"


def _sentences(sentences: list[str] | None, none: str = "") -> list[str]:
    return [] if sentences is None else sentences or ([none] if none else [])  # None: never checked


def _parents(info: Mapping[str, Any]) -> Iterator[str]:
    """The runs that this one was forked from or has its first weights from."""
    forked = info.get("forked_from")
    if forked:
        changed = [f"{name} = {value!r}" for name, value in forked.get("settings", {}).items()]
        yield f"fork     of {forked['run']} at step {forked['step']}{_listed(', with ', changed)}"
    started = info.get("started_from")
    if started:
        reasons = {"other_shape": "it has in another shape", "missing": "that run does not have"}
        reasons["left"] = "only that run has"
        unfit = [f"{reason} {_listed('', started[name])}" for name, reason in reasons.items() if started.get(name)]
        yield (
            f"weights  of {started['run']}, step {started['step']}: {len(started.get('taken', ()))} taken"
            f"{_listed('; did not fit: ', unfit, '; ')}"
        )


def _listed(opening: str, items: Sequence[str], between: str = ", ") -> str:
    """The first items after an opening, and how many more there are; empty for none."""
    more = [f"and {len(items) - _MOST_LISTED} more"] if len(items) > _MOST_LISTED else []
    return opening + between.join([*items[:_MOST_LISTED], *more]) if items else ""


def _origin(provenance: Mapping[str, Any]) -> Iterator[str]:
    if not provenance:
        return
    if git := provenance.get("git"):
        yield f"commit   {git.get('commit')}{', with changes' if git.get('dirty') else ''}"
    for name in ("packages", "plugins"):
        if versions := list(_versions(provenance.get(name, {}))):
            yield f"{name:<8} {', '.join(versions)}"
    yield f"python   {provenance.get('python')} on {provenance.get('host')}, {provenance.get('platform')}"
    if (devices := provenance.get("devices")) is not None:
        yield f"devices  {', '.join(device.removeprefix('/device:') for device in devices)}"
    if (argv := provenance.get("argv")) is not None:
        yield f"command  {' '.join(argv)}"


def _versions(rows: Mapping[str, Any]) -> Iterator[str]:
    """Packages with their versions, and the plugins that are not part of ganlab."""
    for name, row in rows.items():
        if not isinstance(row, dict):
            yield f"{name} {row}"
        elif row.get("distribution") not in ("ganlab", DISTRIBUTION):
            yield f"{name} {row.get('version') or ''}".strip() + f" ({row.get('distribution')})"
