"""Reads one metric of a run, while the run is being written and after it has ended."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ganlab.errors import RunError
from ganlab.runs.directory import METRICS, RunDirectory
from ganlab.support.paths import open_inside
from ganlab.telemetry.jsonl_lines import lines_of, rows_of

# Sections that run.json keeps apart from the metrics of training, under names without this prefix.
_APART = ("evaluation", "diagnostics")


class MetricFollower:
    """Follows a metric through metrics.jsonl, reading only the new lines each time.

    Attributes:
        values: Values by step, in order.
        step: The step of the last line.
    """

    def __init__(self, run: Path, tag: str) -> None:
        """Takes the run's directory, which need not exist yet, and the metric's name."""
        self._path, self._tag = run / METRICS, tag
        self._inode, self._end = 0, 0
        self.values: dict[int, float] = {}
        self.step = 0

    def follow(self) -> None:
        """Reads the new lines. If a resumed run has truncated the file, reads it from the start."""
        try:
            file = open_inside(self._path.parent, self._path.name)
        except (OSError, RunError):
            return
        with file:
            status = os.fstat(file.fileno())
            if status.st_ino != self._inode or status.st_size < self._end:
                self._inode, self._end, self.step = status.st_ino, 0, 0
                self.values.clear()
            # A line that is not one of metrics is reported by whoever reads the run next.
            try:
                for line, step, records in rows_of(lines_of(file, self._end), self._path, (self._tag,)):
                    self._end, self.step = line.end, self.step if step is None else step
                    self.values.update((record.step, record.reduced) for record in records)
            except RunError:
                self._end = status.st_size


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
