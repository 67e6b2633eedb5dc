"""The runs that train below a folder now, from the ends of files alone: nothing in a run is executed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ganlab.commands import meant
from ganlab.errors import RunError
from ganlab.runs import METRICS, RunDirectory, find_runs, start_watching, status_of
from ganlab.telemetry import last_row


@dataclass(frozen=True)
class Progress:
    """A run at one moment.

    Attributes:
        path: Its directory.
        status: As `ganlab runs list` has it.
        step: The step of its last row, or of run.json where that is later.
        steps: Those of the whole run; None if unknown.
        value: The metric's last value in the last row; None if it is not there.
        speed: Generator updates per second since the look before, or on average where this is the first; None if
            unknown, as until steps after the first have been timed: the first takes longer.
    """

    path: Path
    status: str
    step: int
    steps: int | None
    value: float | None
    speed: float | None

    @property
    def seconds_left(self) -> float | None:
        """The time that the rest takes at this speed."""
        return (self.steps - self.step) / self.speed if self.steps is not None and self.speed else None


class Watcher:
    """Looks at a folder again and again. A run that has ended since it was first seen training is still shown."""

    def __init__(self, folder: Path, metric: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Looks at nothing yet.

        Args:
            folder: Where the runs are.
            metric: The metric to show.
            clock: Seconds.
        """
        self._folder, self._metric, self._clock = folder, metric, clock
        self._before: dict[Path, tuple[int, float, float | None]] = {}

    def look(self, *, wait: bool = False) -> list[Progress]:
        """The runs that train now, and those that did at an earlier look, sorted by path.

        Args:
            wait: Whether to find out first about processes of other machines, as `ganlab.runs.holder` does.
        """
        found = []
        paths = list(find_runs(self._folder))
        start_watching(paths)
        for path in paths:
            # One that is being written, or is broken, is reported by `ganlab runs list`, and must not hide the others.
            with contextlib.suppress(Exception):
                info = RunDirectory(path).info
                status = status_of(path, info, wait=wait)
                if status == "running" or path in self._before:
                    found.append(self._progress(path, status, info))
        return found

    def _progress(self, path: Path, status: str, info: Mapping[str, Any]) -> Progress:
        known = (*info.get("metrics", ()), *(f"evaluation/{name}" for name in info.get("evaluation", ())))
        tag, *others = meant(self._metric, known) or [self._metric]
        logged, value = _last_row(path, self._metric if others else tag)
        if value is None:  # not in the last row
            value = {f"evaluation/{name}": figure for name, figure in info.get("evaluation", {}).items()}.get(tag)
        step = max(logged, info.get("step", 0))
        now = self._clock()
        at, since, speed = self._before.get(path, (step, now, None))
        timed = _timed_from(info)
        if step > at and now > since:
            # A row comes now and then: the speed holds until the next one.
            speed = (step - at) / (now - since) if timed is not None and at >= timed[0] else None
            at, since = step, now
        if speed is None and timed is not None:
            speed = _average(info, *timed)
        self._before[path] = (at, since, speed)
        return Progress(path, status, step, info.get("steps"), value, speed)


def _last_row(path: Path, metric: str) -> tuple[int, float | None]:
    """The step of a run's last row, and the metric in it."""
    try:
        row = last_row(path / METRICS, [metric])
    except (OSError, RunError):
        row = None
    step, records = row or (0, [])
    return step, records[0].reduced if records else None


def _timed_from(info: Mapping[str, Any]) -> tuple[int, float] | None:
    """The step and the seconds of training from which the run's speed is measured; None if it is too soon."""
    timed = info.get("timed_from")
    return timed and (timed["step"], timed["seconds"])


def _average(info: Mapping[str, Any], step: int, seconds: float) -> float | None:
    """The speed since then; None if nothing has been trained since."""
    reached, spent = info.get("step", 0), info.get("wall_seconds", 0)
    return (reached - step) / (spent - seconds) if reached > step and spent > seconds else None
