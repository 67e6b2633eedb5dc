"""Reads one metric of a run, while the run is being written and after it has ended."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ganlab.errors import RunError
from ganlab.runs.directory import METRICS, RunDirectory
from ganlab.support.paths import open_inside

_STEP = re.compile(rb'\{"step": (\d{1,18}),')
# The longest line that is read, in bytes. The lines of thousands of replicas are a hundredth of it.
_LONGEST = 1 << 26
# Sections that run.json keeps apart from the metrics of training, under names without this prefix.
_APART = ("evaluation", "diagnostics")


class Trail:
    """Follows a metric through metrics.jsonl, reading only the new lines each time.

    Attributes:
        values: Values by step, in order.
        step: The step of the last line.
    """

    def __init__(self, run: Path, tag: str) -> None:
        """Takes the run's directory, which need not exist yet, and the metric's name."""
        self._path, self._tag = run / METRICS, tag
        self._mark = json.dumps(tag).encode()
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
            file.seek(self._end)
            for row in iter(lambda: file.readline(_LONGEST), b""):
                if not row.endswith(b"\n"):
                    return
                self._end += len(row)
                self._take(row)

    def _take(self, row: bytes) -> None:
        found = _STEP.match(row)
        if not found:
            return
        self.step = int(found[1])
        if self._mark in row:
            try:
                self.values[self.step] = float(json.loads(row)["metrics"][self._tag]["reduced"])
            # Not a line of ganlab's; whoever reads the run next reports it.
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
                return


def last_value(run: Path, tag: str, trail: Trail | None = None) -> float | None:
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
        trail = Trail(run, tag)
    trail.follow()
    return trail.values[max(trail.values)] if trail.values else None


def known_values(info: Mapping[str, Any]) -> dict[str, float]:
    """The last value of each metric that run.json has, by its name in metrics.jsonl."""
    values: dict[str, float] = {}
    for kind in ("metrics", *_APART):
        figures = info.get(kind)
        for name, value in figures.items() if isinstance(figures, dict) else ():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                values[name if kind == "metrics" else f"{kind}/{name}"] = float(value)
    return values
