"""Follows metrics.jsonl while a run writes it: reads only what was written since, and bounds time and memory."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Generic, Protocol, TypeVar

from ganlab.errors import RunError
from ganlab.interfaces.record import Record
from ganlab.support.paths import open_inside
from ganlab.telemetry.jsonl_lines import MOST_DAMAGED, lines_of, row_of, rows_of, too_damaged

# The bytes before the place of reading, by which a file that was cut and written again is noticed.
_ANCHOR = 64

# How many lines are read between looks at the clock, if none of them is long.
_LINES, _LONG_LINE = 64, 1 << 16

# Bytes at the end of a file in which its last row is looked for: first fewer, then more.
_TAILS = (1 << 15, 1 << 20)

Stamp = tuple[int, int, int]


class Collected(Protocol):
    """Interface for what becomes of a metric's records."""

    def add(self, record: Record) -> None:
        """Takes the next record."""


Metric = TypeVar("Metric", bound=Collected)


class MetricsFollower(Generic[Metric]):
    """One metrics.jsonl, read as far as it was asked for: each metric from the byte up to which it was read before.

    Attributes:
        path: The file.
        metrics: The records of each metric that was asked for.
        step: The step of the newest row that was read; 0 if there is none.
        damaged: How many lines are not lines of metrics.
    """

    def __init__(self, path: Path, new: Callable[[], Metric]) -> None:
        """Takes the file, which need not exist yet.

        Args:
            path: The file.
            new: Makes an object that collects the records of one metric.
        """
        self.path, self._new = path, new
        self.forget()

    def forget(self) -> None:
        """Drops what was read."""
        self.metrics: dict[str, Metric] = {}
        self.step = self.damaged = 0
        self._offsets: dict[str, int] = {}
        self._damaged_to, self._room = 0, MOST_DAMAGED
        self._identity: tuple[int, int] | None = None
        self._anchor = (0, b"")
        self._read_whole: Stamp | None = None
        self._too_damaged: Stamp | None = None

    def unread(self, tags: Sequence[str]) -> int:
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

    def advance(self, tags: Sequence[str], until: float = math.inf) -> bool:
        """Reads on; from the beginning if the file was cut, replaced or removed.

        Args:
            tags: The metrics to read.
            until: When to stop, by `time.monotonic`.

        Returns:
            Whether all of them were read to the end of the file, an unfinished last line aside.

        Raises:
            RunError: The file leads out of the run's folder, is not a regular file, or is too damaged.
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
                self.metrics.setdefault(tag, self._new())
                self._offsets.setdefault(tag, 0)
            starts = sorted({self._offsets[tag] for tag in tags})
            # Metrics that were read equally far are read together, those that are behind first.
            for start, stop in zip(starts, [*starts[1:], None], strict=True):
                group = [tag for tag in tags if self._offsets[tag] == start]
                try:
                    if not self._read(file, group, start, stop, until):
                        return False
                except RunError:
                    self._too_damaged = stamp
                    raise
            if len(set(self._offsets.values())) == 1:
                self._read_whole = stamp
            return True

    def _read(self, file: IO[bytes], tags: list[str], start: int, stop: int | None, until: float) -> bool:
        """Reads lines from a byte to another, or to the end; whether it came there in time."""
        at, done = start, True
        for line, step, records in rows_of(lines_of(file, start), self.path, tags):
            if stop is not None and line.start >= stop:
                break
            if step is not None:
                self.step = max(self.step, step)
            elif line.start >= self._damaged_to:  # counted once, however many metrics meet it
                self.damaged += line.text.endswith(b"\n")
                self._damaged_to, self._room = line.end, self._room - line.cost
                if self._room < 0:
                    raise too_damaged(self.path)
            for record in records:
                self.metrics[record.tag].add(record)
            at = line.end
            if (line.number % _LINES == 0 or len(line.text) > _LONG_LINE) and time.monotonic() > until:
                done = False
                break
        self._offsets |= dict.fromkeys(tags, at)
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


def last_row(path: Path, tags: Sequence[str]) -> tuple[int, list[Record]] | None:
    """The step of a file's last row, and some of its metrics, without reading the rows before it.

    Args:
        path: The file.
        tags: The metrics to read.

    Returns:
        None if the last line, or what is left of it in the last MiB, is not a line of metrics.

    Raises:
        RunError: The file leads out of the run's folder or is not a regular file.
        OSError: It cannot be read.
    """
    with open_inside(path.parent, path.name) as file:
        size = file.seek(0, os.SEEK_END)
        for length in _TAILS:
            file.seek(max(0, size - length))
            whole, newline, _ = file.read(length).rpartition(b"\n")
            _, before, last = whole.rpartition(b"\n")
            if before or length >= size:
                return row_of(last + newline, tags)
    return None


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_size, status.st_mtime_ns, status.st_ino
