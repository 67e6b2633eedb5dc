"""Reads runs for comparing: settings, status and metrics. Data only: nothing in a run is executed."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ganlab.commands import Direction
from ganlab.errors import RunError
from ganlab.files import line
from ganlab.runs import (
    INFO,
    METRICS,
    MOST_SETTINGS,
    SEED,
    Change,
    RunDirectory,
    Scalar,
    all_changes,
    complaints_of,
    limits_of,
    read_fields,
    runs_matching,
    status_of,
    warnings_of,
    why_unreadable,
)
from ganlab_compare.metric_rows import Reader, read_series

# The tables of last values in run.json, and the prefixes of their tags in metrics.jsonl.
_MEASURED = {"metrics": "", "evaluation": "evaluation/", "diagnostics": "diagnostics/"}

# The largest difference that is expected between the clocks of machines.
_CLOCKS_DIFFER = timedelta(days=1)

# The most metrics of a run, with those of each layer.
_MOST_METRICS = 20_000

# The statuses of runs that came to their end.
ENDED = ("completed", "diverged")


@dataclass(frozen=True)
class RunSummary:
    """One run, with the fields that comparing needs.

    Attributes:
        path: The run's directory.
        name: The last two parts of the path, which identify a run among others.
        settings: Every setting by its full name, defaults included, the seed too.
        seed: The experiment's seed; None if run.json lacks it.
        status: As in run.json: `running`, `completed`, `interrupted`, `failed` or `diverged`; or `killed`, if no
            process trains what should be running.
        step: Generator updates done; of a run that diverged, the first that is not finite.
        steps: Generator updates that were requested.
        wall_seconds: How long it trained, resumed parts included; None if run.json lacks it.
        last: The last value of each metric by its tag, as in metrics.jsonl. May hold values that are not finite.
        best: The best finite value of each compared metric that has a direction, over all logged rows.
        started: When it began, as in run.json: UTC, ISO 8601; empty if run.json lacks it.
        health: Complaints of its last health check, each `<name>: <sentence>`; None if there was no check.
        warnings: Its warnings.
        changes: Changes midway, by `--resume --allow-changes`.
        best_steps: The steps of the best values that metrics.jsonl has.
        limits: The least and the largest value that a figure can have, by its tag.
        better: `max` or `min` by the tag of a figure: which values are better, as its evaluator declares.
    """

    path: Path
    name: str
    settings: dict[str, Scalar]
    seed: int | None
    status: str
    step: int
    steps: int
    wall_seconds: float | None
    last: dict[str, float] = field(default_factory=dict)
    best: dict[str, float] = field(default_factory=dict)
    started: str = ""
    health: tuple[str, ...] | None = None
    warnings: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    best_steps: dict[str, int] = field(default_factory=dict)
    limits: dict[str, tuple[float, float]] = field(default_factory=dict)
    better: dict[str, Direction] = field(default_factory=dict)

    @property
    def steps_per_second(self) -> float | None:
        """Generator updates per second of training; None if unknown."""
        return self.step / self.wall_seconds if self.wall_seconds and self.step else None


def read_runs(paths: Sequence[str | os.PathLike[str]]) -> tuple[list[RunSummary], list[str]]:
    """Reads runs.

    Args:
        paths: Run directories, folders of them, or patterns, for example `runs/*/baseline-*`.

    Returns:
        The runs, each once, and a sentence for each that cannot be read.

    Raises:
        RunError: A path does not exist, or none leads to a run that can be read.
    """
    runs, problems = [], []
    for path in _run_paths(paths):
        try:
            runs.append(read_run(path))
        except Exception as error:  # of one run, which must not hide the others
            problems.append(f"Left out: {why_unreadable(path, error)}")
    if not runs:
        reasons = "".join(f"\n{problem}" for problem in problems)
        where = ", ".join(map(str, paths)) or "nothing"
        raise RunError(
            f"No run to compare in {where}. Give runs, or folders that 'ganlab run' or 'ganlab sweep' wrote to."
            f"{reasons}"
        )
    return runs, problems


def read_run(path: Path) -> RunSummary:
    """Reads a run from its run.json.

    Args:
        path: The run's directory.

    Raises:
        RunError: It cannot be read, or it has no settings.
    """
    info, problems = read_fields(path)
    if problem := problems.get("settings"):
        raise problem
    last = {
        f"{prefix}{name}": float(value)
        for title, prefix in _MEASURED.items()
        for name, value in info.get(title, {}).items()
    }
    settings = info.get("settings")
    if settings is None:
        raise RunError(f"{line(path / INFO)} has no settings. Restore the file, or remove the run.")
    if len(settings) > MOST_SETTINGS or len(last) > _MOST_METRICS:
        raise RunError(
            f"{line(path / INFO)} has {len(settings)} settings and {len(last)} metrics; at most {MOST_SETTINGS} and "
            f"{_MOST_METRICS} are compared. Restore the file, or remove the run."
        )
    return RunSummary(
        path=path,
        name=line(f"{path.parent.name}/{path.name}".lstrip("/")),
        settings=settings,
        seed=info.get("seed", _whole(settings.get(SEED))),
        status=line(status_of(path, info, wait=False)),
        step=info.get("diverged_at") or info.get("step", 0),
        steps=info.get("steps", 0),
        wall_seconds=info.get("wall_seconds"),
        last=last,
        started=_time(info.get("provenance", {}).get("started", "")),
        health=complaints_of(info),
        warnings=warnings_of(info),
        changes=all_changes(info),
        limits={tag: limits_of(info, tag) for tag in info.get("limits", {})},
        better=info.get("better", {}),
    )


def with_rows(run: RunSummary, directions: dict[str, str | None], read: Reader = read_series) -> RunSummary:
    """Adds values from metrics.jsonl: best values, and last ones that run.json lacks.

    The file is read only if one of these is needed. run.json is some seconds behind a run in progress, and permanently
    behind one that was killed, so for these runs the last values come from the file too.

    Args:
        run: The run, as read from run.json.
        directions: The directions of the metrics compared, `max`, `min` or None, by tag.
        read: Reads metrics of a metrics.jsonl.

    Raises:
        RunError: The file cannot be read.
    """
    running = run.status in ("running", "killed")
    wanted = [tag for tag, way in directions.items() if way or running or tag not in run.last]
    series = read(run.path / METRICS, wanted) if wanted else {}
    last, step = dict(run.last), run.step
    for tag, rows in series.items():
        if running or tag not in last:
            last[tag] = float(rows.values[-1])
        step = max(step, int(rows.steps[-1])) if running else step
    best, steps = {}, {}
    for tag, way in directions.items():
        # Figures of `ganlab evaluate --save` are only in run.json.
        values = [*(series[tag].values.tolist() if tag in series else ()), *([last[tag]] if tag in last else ())]
        finite = [value for value in values if math.isfinite(value)]
        if way and finite:
            best[tag] = max(finite) if way == "max" else min(finite)
            if tag in series and (at_best := series[tag].values == best[tag]).any():
                steps[tag] = int(series[tag].steps[at_best][-1])
    return replace(run, last=last, best=best, step=step, best_steps=steps)


def without_reruns(runs: Iterable[RunSummary]) -> tuple[list[RunSummary], list[str]]:
    """Keeps one run for each combination of settings and seed: the newest that came to its end, else the newest.

    A run that was changed midway does not match its settings, and is kept only if all of them were changed.

    A rerun is the same draw again, not another one: counted twice it would make intervals too narrow.

    Args:
        runs: The runs as read.

    Returns:
        The runs that are kept, in order, and a sentence on the others if there are any.
    """
    groups: dict[Any, list[RunSummary]] = {}
    for run in runs:
        groups.setdefault(frozenset({**run.settings, SEED: run.seed}.items()), []).append(run)
    distinct = [
        max(group, key=lambda run: (not run.changes, run.status in ENDED, run.started)) for group in groups.values()
    ]
    dropped = sum(map(len, groups.values())) - len(distinct)
    if not dropped:
        return distinct, []
    runs_are = "runs have" if dropped > 1 else "run has"
    return distinct, [
        f"{dropped} {runs_are} the settings and the seed of another and {'are' if dropped > 1 else 'is'} left out: a "
        "rerun is not another seed. Of each, the newest that came to its end is kept."
    ]


def _run_paths(paths: Sequence[str | os.PathLike[str]]) -> list[Path]:
    by_place: dict[Path, Path] = {}
    for path in paths:
        runs = list(runs_matching(path))
        if not runs and not Path(path).exists():
            RunDirectory(path)  # its error describes what is there instead
        for run in runs:
            by_place.setdefault(run.resolve(), run)
    return list(by_place.values())


def _whole(value: Any) -> int | None:
    return value if type(value) is int and abs(value) < 2**63 else None


def _time(value: str) -> str:
    """A time in UTC, as a text that sorts by time; empty if invalid or in the future, which must not count as newer."""
    try:
        time = datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError):
        return ""
    return time.isoformat() if time < datetime.now(UTC) + _CLOCKS_DIFFER else ""
