"""The data of each view, as plain values for JSON."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ganlab_compare import (
    Comparison,
    Configuration,
    Curve,
    Reader,
    RunSummary,
    Series,
    as_data,
    best_first,
    compare_runs,
    default_metrics,
    main_metric,
    named_metrics,
    read_curves,
    short_names,
    shortened,
    without_common,
)

from ganlab.errors import GanlabError, RunError
from ganlab.files import is_name, read_inside
from ganlab.runs import METRICS, SEED, RunDirectory, differing
from ganlab.telemetry import to_json
from ganlab_tensorboard.store import ShownRun, Store

# Metrics of one request, pictures of a run, and bytes of one.
MOST_TAGS, _MOST_PICTURES, _MOST_BYTES = 64, 2000, 20_000_000

# Runs whose files are searched for metrics that run.json lacks.
_SEARCHED = 6

# Seconds that a request for one run may read.
_SECONDS = 0.2

# Names of metrics to choose from; a stranger's file may have any number.
_MOST_NAMES = 5000

# Curves that are remembered, of some tens of kilobytes each.
_MOST_CURVES = 500

# Settings to group by, and curves of one answer.
_MOST_SETTINGS, MOST_DRAWN = 60, 20

_PNG = b"\x89PNG\r\n\x1a\n"


def overview(store: Store) -> dict[str, Any]:
    """The runs and the metrics that there are."""
    runs = store.runs()
    tags = {tag for run in runs for tag in run.summary.last}
    for run in runs[:: max(1, len(runs) // _SEARCHED)]:
        tags |= store.tags(run)
    short = without_common([run.name for run in runs])
    return {
        "runs": [
            {
                "id": run.id,
                "name": run.name,
                "short": short[run.name],
                "status": run.summary.status,
                "step": run.summary.step,
                "steps": run.summary.steps,
                "seed": run.summary.seed,
                "health": run.summary.health,
                "warnings": run.summary.warnings,
            }
            for run in runs
        ],
        "metrics": sorted(tags)[:_MOST_NAMES],
        "problems": store.problems(),
    }


def comparison(
    store: Store,
    metrics: Sequence[str],
    against: str | None,
    curve: str | None,
    by: str | None = None,
    drawn: Collection[str] | None = None,
) -> dict[str, Any]:
    """The figures of `ganlab compare --json`, and the curves of one metric.

    Args:
        store: The runs.
        metrics: The metrics of the table, as for `ganlab compare --metric`; none for its own choice and the curve's.
        against: The reference's label.
        curve: The metric to draw, also with `:max` or `:min`; None for the first of the table.
        by: The setting to group by; `*` for a row for each run; None for all settings but the seed.
        drawn: The rows whose curves are wanted, by their `id`; None for the best ones.

    Raises:
        GanlabError: A metric, the setting or the reference is unknown.
    """
    runs = store.runs()
    if not runs:
        return {"configurations": [], "metrics": [], "curves": [], "problems": list(store.problems()), "pending": 0}
    summaries, ids = [run.summary for run in runs], {run.path: run.id for run in runs}
    if curve and not metrics:
        metrics = _with_default(curve, summaries)
    settings = differing(summary.settings for summary in summaries)[:_MOST_SETTINGS]
    each = [*settings, *([SEED] if any(SEED in summary.settings for summary in summaries) else [])]
    compared = compare_runs(
        summaries,
        store.problems(),
        by=each if by == "*" else [by] if by else [],
        metrics=metrics,
        against=against,
        read=store.reader(extremes=True),
    )
    data, short = as_data(compared, runs=False), short_names(compared)
    for row, one in zip(data["configurations"], compared.configurations, strict=True):
        row["runs"] = [
            {"id": ids[run.path], "name": run.name, "seed": run.seed, "status": run.status, "step": run.step}
            | {"unhealthy": bool(run.health), "warnings": len(run.warnings)}
            for run in one.runs
        ]
        row["id"], row["short"] = _id(one, ids), short[one.label]
        row["examples_per_step"] = _examples(one)
        row["seconds_per_step"] = 1 / one.steps_per_second if one.steps_per_second else None
    main = main_metric(compared)
    tag = curve or (main.tag if main else None)
    best = best_first(compared)
    rows = best if drawn is None else [one for one in best if _id(one, ids) in drawn]
    curves, pending = _curves(store, compared, tag, rows[:MOST_DRAWN]), store.pending()
    for row in data["configurations"] if pending else ():
        row["best"] = {}  # not known before every row was read
    names = shortened(compared.differing) | shortened([metric.tag for metric in compared.metrics])
    return {**data, "curve": tag, **curves, "pending": pending, "names": names, "groups": settings}


def _id(one: Configuration, ids: dict[Path, str]) -> str:
    return ids[one.runs[0].path][:8]


def series(store: Store, run: ShownRun, tags: Sequence[str]) -> dict[str, Any]:
    """Metrics of one run, with the values of replicas.

    Args:
        store: The runs.
        run: The run.
        tags: The metrics, `MOST_TAGS` at most.
    """
    path, data = run.path / METRICS, {}
    metrics = store.metrics(path, tuple(dict.fromkeys(tags))[:MOST_TAGS], time.monotonic() + _SECONDS)
    for tag, metric in metrics.items():
        steps, values, replicas = metric.replicas()
        data[tag] = {
            "steps": steps.tolist(),
            "values": _plain(values.tolist()),
            "replicas": to_json(replicas.tolist()) if replicas.shape[1] else [],
            "rows": metric.rows,
            "stride": metric.stride,
        }
    return {"series": data, "damaged": store.damaged(path), "pending": store.pending()}


def details(store: Store, run: ShownRun) -> dict[str, Any]:
    """Everything about a run but its rows."""
    summary = run.summary
    return {
        "id": run.id,
        "name": run.name,
        "status": summary.status,
        "step": summary.step,
        "settings": to_json(summary.settings),
        "health": summary.health,
        "failure": RunDirectory(run.path).info.get("error"),
        "warnings": summary.warnings,
        "last": to_json(summary.last),
        "tags": sorted(store.tags(run))[:_MOST_NAMES],
        "samples": sample_steps(run),
    }


def sample_steps(run: ShownRun) -> list[int]:
    """The steps of which a run has pictures of samples."""
    try:
        names = [path.name for path in (run.path / "samples").glob("step-*.png")]
    except OSError:
        return []
    digits = [name.removeprefix("step-").removesuffix(".png") for name in names if is_name(name)]
    return sorted(int(text) for text in digits if text.isascii() and text.isdigit() and len(text) < 19)[:_MOST_PICTURES]


def sample(run: ShownRun, step: int) -> bytes:
    """A picture of samples, a PNG.

    Raises:
        RunError: There is none, or the file is something else.
    """
    for name in (f"step-{step:08d}.png", f"step-{step}.png"):
        try:
            data = read_inside(run.path, Path("samples") / name, most=_MOST_BYTES)
        except OSError:
            continue
        if data.startswith(_PNG):
            return data
    raise RunError(f"This run has no picture of samples at step {step}.")


def _with_default(curve: str, runs: Sequence[RunSummary]) -> list[str]:
    """The metrics of a table without a choice, and one more if it is not among them; none if nothing changes."""
    chosen = [metric.tag for metric in default_metrics(runs)[0]]
    tag = curve.removesuffix(":max").removesuffix(":min")
    if curve in chosen:
        return []
    return [curve if one == tag else one for one in chosen] + ([] if tag in chosen else [curve])


def _curves(store: Store, compared: Comparison, tag: str | None, rows: Sequence[Configuration]) -> dict[str, Any]:
    if tag is None:
        return {"curves": []}
    try:
        (metric,) = named_metrics([tag], [run for one in compared.configurations for run in one.runs])
        read = store.reader(extremes=False)
        drawn = [_curve(store, compared, one, metric.tag, read) for one in rows]
    except GanlabError as error:
        return {"curves": [], "curve_problem": " ".join(str(error).split())}
    return {
        "curve": metric.tag,
        "curves": [
            {"label": one.label, "steps": one.steps, "n": one.n}
            | {"mean": _plain(one.mean), "low": _plain(one.low), "high": _plain(one.high)}
            for one in drawn
            if one is not None
        ],
    }


def _curve(store: Store, compared: Comparison, one: Configuration, tag: str, read: Reader) -> Curve | None:
    """A configuration's curve, worked out again only if a run has new rows."""
    key = (one.runs[0].path, tag)
    series = {run.path / METRICS: read(run.path / METRICS, [tag]).get(tag) for run in one.runs}
    rows, known = store.curves.get(key, ([], None))
    if len(rows) == len(series) and all(a is b for a, b in zip(rows, series.values(), strict=True)):
        return None if known is None else replace(known, label=one.label)

    def again(path: Path, tags: Collection[str]) -> dict[str, Series]:
        rows_of_run = series[path]
        return {} if rows_of_run is None else {tag: rows_of_run}

    drawn = read_curves(replace(compared, configurations=(one,)), tag, read=again)
    store.curves[key] = (list(series.values()), drawn[0] if drawn else None)
    while len(store.curves) > _MOST_CURVES:
        store.curves.popitem(last=False)
    return drawn[0] if drawn else None


def _plain(values: Sequence[float]) -> Any:
    """Numbers for JSON; most lists have nothing to replace."""
    return values if all(map(math.isfinite, values)) else to_json(values)


def _examples(one: Configuration) -> float | None:
    """Real examples that the critic sees per generator update; None where a setting is missing."""
    settings = one.runs[0].settings
    batch, critic_steps = settings.get("experiment.batch_size"), settings.get("experiment.critic_steps", 1)
    for value in (batch, critic_steps):
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
            return None
    examples = float(batch) * float(critic_steps)  # type: ignore[arg-type]
    return examples if math.isfinite(examples) else None
