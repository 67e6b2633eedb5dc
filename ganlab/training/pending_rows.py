"""Turns the metrics of every iteration and replica into the rows that people read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ganlab.composition import ONE_EACH, Turn
from ganlab.telemetry import Record
from ganlab.training.graph.replica import Metric

_REDUCTIONS: dict[str, Callable[..., np.ndarray]] = {"mean": np.mean, "max": np.max, "min": np.min, "sum": np.sum}


class Rows:
    """Gathers iterations into rows of `log_every`.

    Attributes:
        pending: Iterations since the last row, `(iterations, replicas, metrics)`: part of a checkpoint, so that a
            resumed run writes the same row as an uninterrupted one.
    """

    def __init__(self, metrics: Sequence[Metric], log_every: int, replicas: int, turn: Turn = ONE_EACH) -> None:
        self._metrics, self._log_every, self._turn = list(metrics), log_every, turn
        self._tags = [metric.tag for metric in self._metrics]
        self.pending = np.zeros((0, replicas, len(self._metrics)), np.float32)

    def add(self, first: int, values: np.ndarray) -> Iterator[list[Record]]:
        """Takes `(iterations, replicas, metrics)` after step `first`, and yields the rows that they complete."""
        start = first - len(self.pending)
        values = np.concatenate([self.pending, values])
        done = start + len(values)
        for end in range((start // self._log_every + 1) * self._log_every, done + 1, self._log_every):
            yield self._row(end, values[: end - start])
            values, start = values[end - start :], end
        self.pending = values

    def resume(self, pending: np.ndarray) -> None:
        """Restores what a checkpoint had pending; drops it if replicas or metrics have changed."""
        if pending.shape[1:] == self.pending.shape[1:]:
            self.pending = pending

    def rest(self, step: int) -> list[Record]:
        """The row of the pending iterations at the end of a run, empty if there are none."""
        if not len(self.pending):
            return []
        row = self._row(step, self.pending)
        self.pending = self.pending[:0]
        return row

    def breaking(self, first: int, values: np.ndarray) -> Iterator[list[Record]]:
        """Takes iterations after step `first`, the last of which broke the run, and yields rows that show what grew.

        The breaking iteration has a row of its own: averaged with it, the finite values before it would be lost.
        """
        yield from self.add(first, values[:-1])
        step = first + len(values)
        before = self.rest(step - 1)
        if before:
            yield before
        yield self._row(step, values[-1:])

    def _row(self, step: int, values: np.ndarray) -> list[Record]:
        records = []
        iterations = np.arange(step - len(values), step)
        for i, metric in enumerate(self._metrics):
            measured = metric.measured(iterations, self._turn)
            if metric.when:
                measured = measured & (values[:, 0, self._tags.index(metric.when)] > 0)
            if not measured.any():
                continue
            column = values[measured, :, i].astype(np.float64)
            over_time = _REDUCTIONS["mean" if metric.reduce == "sum" else metric.reduce]
            replicas = over_time(column, axis=0)
            reduced = _REDUCTIONS[metric.reduce](replicas)
            records.append(Record(step, metric.tag, float(reduced), tuple(map(float, replicas))))
        return records
