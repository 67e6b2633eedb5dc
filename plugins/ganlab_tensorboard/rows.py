"""Reads metrics.jsonl as it grows: each metric from the byte up to which it was read before."""

from __future__ import annotations

import math
import os
import time
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np

from ganlab.comparing import Series
from ganlab.errors import RunError
from ganlab.files import open_inside
from ganlab.telemetry import MOST_DAMAGED, Record, lines_of, rows_of, too_damaged

# The most rows of a metric in memory. When there are more, every other row is left out, and from then on, too.
MOST_ROWS = 1024

# Values of replicas beyond these are not kept.
MOST_REPLICAS = 256

# The bytes before the place of reading, by which a file that was cut and written again is noticed.
_ANCHOR = 64

# How many lines are read between looks at the clock, if none of them is long.
_LINES, _LONG_LINE = 64, 1 << 16


class Thinned:
    """One metric of one run: evenly chosen rows, with the first, last, smallest and largest values exact.

    Attributes:
        rows: How many rows the file has of this metric, as far as it was read.
        stride: Each how many of them one was kept.
        width: How many values of replicas a kept row has.
    """

    def __init__(self) -> None:
        """Makes it empty."""
        self.rows, self.stride, self.width = 0, 1, 0
        self._steps, self._values, self._replicas = array("q"), array("d"), array("d")
        self._low: Record | None = None
        self._high: Record | None = None
        self._last: Record | None = None
        self._made: dict[bool, tuple[int, Series]] = {}

    def add(self, record: Record) -> None:
        """Takes the next row."""
        value = record.reduced
        if math.isfinite(value):
            if self._low is None or value <= self._low.reduced:
                self._low = record
            if self._high is None or value >= self._high.reduced:
                self._high = record
        self._last = record
        if self.rows % self.stride == 0:
            self._keep(record)
        self.rows += 1

    @property
    def size(self) -> int:
        """About how much memory it takes."""
        return 8 * len(self._steps) * (8 + self.width) + 1000

    def series(self, *, extremes: bool = False) -> Series:
        """The kept rows and the last one.

        Args:
            extremes: Whether to add the rows with the smallest and the largest value.
        """
        rows, known = self._made.get(extremes, (-1, None))
        if known is not None and rows == self.rows:
            return known
        made = self._series(extremes)
        self._made[extremes] = (self.rows, made)
        return made

    def _series(self, extremes: bool) -> Series:
        steps = np.array(self._steps, np.int64)
        values, replicas = np.array(self._values, np.float64), self._table()
        more = [self._last] if self._last is not None and not self._ends_with(self._last) else []
        if extremes:
            more = [record for record in (self._low, self._high) if record is not None] + more
        if more:
            steps = np.concatenate([steps, [record.step for record in more]])
            values = np.concatenate([values, [record.reduced for record in more]])
            replicas = np.concatenate([replicas, [self._row(record) for record in more]])
        order = np.argsort(steps, kind="stable")
        return Series(steps[order], values[order], _spreads(replicas[order]))

    def replicas(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Steps and reduced values `(rows,)`, and those of replicas `(rows, replicas)`, NaN where there is none."""
        steps, values, replicas = self._steps, self._values, self._table()
        if self._last is None or self._ends_with(self._last):
            return np.array(steps, np.int64), np.array(values, np.float64), replicas
        return (
            np.array([*steps, self._last.step], np.int64),
            np.array([*values, self._last.reduced], np.float64),
            np.concatenate([replicas, [self._row(self._last)]]),
        )

    def _keep(self, record: Record) -> None:
        if len(record.replicas) > self.width:
            old, self.width = self._table(), min(len(record.replicas), MOST_REPLICAS)
            wider = np.full((len(old), self.width), np.nan)
            wider[:, : old.shape[1]] = old
            self._replicas = array("d", wider.tobytes())
        self._steps.append(record.step)
        self._values.append(record.reduced)
        self._replicas.extend(self._row(record))
        if len(self._steps) > MOST_ROWS:
            self._replicas = array("d", self._table()[::2].tobytes())
            self._steps, self._values = self._steps[::2], self._values[::2]
            self.stride *= 2

    def _ends_with(self, record: Record) -> bool:
        return bool(self._steps) and (self.rows - 1) % self.stride == 0 and self._steps[-1] == record.step

    def _row(self, record: Record) -> list[float]:
        row = list(record.replicas[: self.width])
        return row + [math.nan] * (self.width - len(row))

    def _table(self) -> np.ndarray:
        return np.array(self._replicas, np.float64).reshape(len(self._steps), self.width)


class MetricsFile:
    """One metrics.jsonl, read as far as it was asked for.

    Attributes:
        damaged: How many lines are not lines of metrics.
    """

    def __init__(self, path: Path) -> None:
        """Takes the file, which need not exist yet."""
        self.path = path
        self.forget()

    def forget(self) -> None:
        """Drops what was read."""
        self.damaged = 0
        self.metrics: dict[str, Thinned] = {}
        self._offsets: dict[str, int] = {}
        self._damaged_to, self._room = 0, MOST_DAMAGED
        self._identity: tuple[int, int] | None = None
        self._anchor = (0, b"")
        self._read_whole: tuple[int, int, int] | None = None
        self._too_damaged: tuple[int, int, int] | None = None

    @property
    def size(self) -> int:
        """About how much memory its metrics take."""
        return sum(metric.size for metric in self.metrics.values())

    def left(self, tags: Sequence[str]) -> int:
        """How many bytes of the file were not read yet for the metric that was read least.

        Raises:
            RunError: It was found too damaged, and is unchanged since.
            OSError: The file cannot be looked at.
        """
        try:
            status = os.lstat(self.path)
        except FileNotFoundError:
            return 0
        if self._too_damaged is not None:
            if _stamp(status) == self._too_damaged:
                raise too_damaged(self.path)
            self.forget()
        if _stamp(status) == self._read_whole and all(tag in self._offsets for tag in tags):
            return 0
        return max((abs(status.st_size - self._offsets.get(tag, 0)) for tag in tags), default=0)

    def advance(self, tags: Sequence[str], until: float) -> bool:
        """Reads on.

        Args:
            tags: The metrics to read.
            until: When to stop, by `time.monotonic`.

        Returns:
            Whether all of them were read to the end of the file, an unfinished last line aside.

        Raises:
            RunError: The file leads out of the run's folder or is not a regular file.
            OSError: It cannot be read.
        """
        try:
            file = open_inside(self.path.parent, self.path.name)
        except FileNotFoundError:
            self.forget()
            return True
        with file:
            self._check(file)
            stamp, self._read_whole = _stamp(os.fstat(file.fileno())), None
            for tag in tags:
                self.metrics.setdefault(tag, Thinned())
                self._offsets.setdefault(tag, 0)
            starts = sorted({self._offsets[tag] for tag in tags})
            # Metrics that were read equally far are read together, those that are behind first.
            for number, start in enumerate(starts):
                group = [tag for tag in tags if self._offsets[tag] == start]
                try:
                    if not self._read(file, group, start, starts[number + 1 : number + 2], until):
                        return False
                except RunError:
                    self._too_damaged = stamp
                    raise
            offsets = set(self._offsets.values())
            if len(offsets) == 1:
                self._read_whole = stamp
            return True

    def _read(self, file: IO[bytes], tags: list[str], start: int, stop: list[int], until: float) -> bool:
        """Reads lines from a byte to another, or to the end; whether it came there in time."""
        at, done = start, True
        by_tag = {tag: self.metrics[tag] for tag in tags}
        for line, step, records in rows_of(lines_of(file, start), self.path, by_tag):
            if stop and line.start >= stop[0]:
                break
            if step is None and line.start >= self._damaged_to:  # counted once, however many metrics meet it
                self.damaged += line.text.endswith(b"\n")
                self._damaged_to, self._room = line.end, self._room - line.cost
                if self._room < 0:
                    raise too_damaged(self.path)
            for record in records:
                by_tag[record.tag].add(record)
            at = line.end
            if (line.number % _LINES == 0 or len(line.text) > _LONG_LINE) and time.monotonic() > until:
                done = False
                break
        for tag in tags:
            self._offsets[tag] = at
        if at > self._anchor[0]:
            file.seek(max(0, at - _ANCHOR))
            self._anchor = (at, file.read(min(at, _ANCHOR)))
        return done

    def _check(self, file: IO[bytes]) -> None:
        """Forgets everything if the file is another one, or was cut, since it was read."""
        status = os.fstat(file.fileno())
        at, seen = self._anchor
        identity = (status.st_dev, status.st_ino)
        file.seek(max(0, at - _ANCHOR))
        if self._identity not in (None, identity) or status.st_size < at or file.read(len(seen)) != seen:
            self.forget()
        self._identity = identity


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ino


def _spreads(replicas: np.ndarray) -> np.ndarray:
    """The largest less the smallest value of a row, NaN in rows with fewer than two or with values not finite."""
    if replicas.shape[1] < 2:
        return np.full(len(replicas), np.nan)
    with np.errstate(invalid="ignore"):
        return np.asarray(replicas.max(axis=1) - replicas.min(axis=1))
