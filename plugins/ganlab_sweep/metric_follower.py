"""Reads one metric of a run, while the run is being written and after it has ended."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ganlab.errors import RunError
from ganlab.runs import METRICS, RunDirectory
from ganlab.telemetry import MetricsFollower, Record

# Sections that run.json keeps apart from the metrics of training, under names without this prefix.
_APART = ("evaluation", "diagnostics")


class MetricFollower:
    """Follows a metric through the metrics.jsonl of a run, which need not exist yet."""

    def __init__(self, run: Path, tag: str) -> None:
        """Takes the run's directory and the metric's name."""
        self._tag, self._file = tag, MetricsFollower(run / METRICS, _Values)

    @property
    def values(self) -> dict[int, float]:
        """Values by step, in order."""
        metric = self._file.metrics.get(self._tag)
        return metric.by_step if metric else {}

    @property
    def step(self) -> int:
        """The step of the last row."""
        return self._file.step

    def follow(self) -> bool:
        """Reads the new rows, and returns whether there may be any; after damage, the run's next reader reports it."""
        with contextlib.suppress(OSError, RunError):
            return self._file.unread((self._tag,)) > 0 and self._file.advance((self._tag,))
        return False


class _Values:
    def __init__(self) -> None:
        self.by_step: dict[int, float] = {}

    def add(self, record: Record) -> None:
        self.by_step[record.step] = record.reduced


def last_value(run: Path, tag: str, trail: MetricFollower | None = None) -> float | None:
    """The last value of a metric in a run that has ended or was stopped; None if it has none.

    Args:
        run: The run's directory.
        tag: The metric's name in metrics.jsonl, for example `evaluation/mode_coverage/modes`.
        trail: The trail of this metric, if it was followed.
    """
    try:
        figures = known_values(RunDirectory(run).info)
    except RunError:
        return None
    if tag in figures:
        return figures[tag]
    if trail is None:
        trail = MetricFollower(run, tag)
    trail.follow()
    return trail.values[max(trail.values)] if trail.values else None


def mean(values: Sequence[float]) -> float:
    """The mean of numbers; NaN where it is beyond all floats, as of one infinity and the other."""
    try:
        return math.fsum(values) / len(values)
    except (OverflowError, ValueError):
        return math.nan


def known_values(info: Mapping[str, Any]) -> dict[str, float]:
    """The last value of each metric that run.json has, by its name in metrics.jsonl."""
    prefixes = {"metrics": "", **{kind: f"{kind}/" for kind in _APART}}
    return {
        f"{prefix}{name}": float(value)
        for kind, prefix in prefixes.items()
        for name, value in info.get(kind, {}).items()
    }
