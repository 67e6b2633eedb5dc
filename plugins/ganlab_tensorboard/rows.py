"""Rows of a metric in bounded memory."""

from __future__ import annotations

import math
from array import array

import numpy as np
from ganlab_compare import Series

from ganlab.telemetry import Record

# The most rows of a metric in memory. When there are more, every other row is left out, and from then on, too.
MOST_ROWS = 1024

# Values of replicas beyond these are not kept.
MOST_REPLICAS = 256


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
        series = self._series(extremes)
        self._made[extremes] = (self.rows, series)
        return series

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


def _spreads(replicas: np.ndarray) -> np.ndarray:
    """The largest less the smallest value of a row, NaN in rows with fewer than two or with values not finite."""
    if replicas.shape[1] < 2:
        return np.full(len(replicas), np.nan)
    with np.errstate(invalid="ignore"):
        return np.asarray(replicas.max(axis=1) - replicas.min(axis=1))
