"""Finds the metrics that grew in a run that diverged, from the rows it logged."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ganlab.telemetry import Record

# A metric that grew by a smaller factor has not run away.
_MUCH = 10.0

# Smaller values count as this: growing from almost zero to a usual size is not a sign of trouble.
_LEAST = 1.0


@dataclass
class Growth:
    """One metric over the rows of a run.

    Attributes:
        tag: The metric.
        first: Its first finite value.
        first_step: The step of `first`.
        last: Its last finite value.
        last_step: The step of `last`.
        end: Its value in the last row that has the metric, finite or not.
        end_step: The step of that row.
    """

    tag: str
    first: float
    first_step: int
    last: float
    last_step: int
    end: float
    end_step: int

    @property
    def factor(self) -> float:
        """The factor by which the metric has grown; infinite if its latest value is not finite."""
        if not math.isfinite(self.end):
            return math.inf
        return abs(self.last) / max(abs(self.first), _LEAST)

    def __str__(self) -> str:
        if not math.isfinite(self.first):
            return f"{self.tag}: {self.end} at step {self.end_step}"
        words = f"{self.tag}: {self.first:.3g} at step {self.first_step}"
        if self.last_step > self.first_step:
            words += f", {self.last:.3g} at step {self.last_step}"
        return words if math.isfinite(self.end) else f"{words}, then {self.end} at step {self.end_step}"


def growth(records: Iterable[Record]) -> list[Growth]:
    """The training metrics that grew tenfold or more, or are not finite any more, sorted by growth in descending order.

    Args:
        records: Every metric of every row, in order.
    """
    found: dict[str, Growth] = {}
    for record in records:
        if not record.replicas:  # from an evaluation or a diagnostic, which run only now and then
            continue
        value, step = record.reduced, record.step
        known = found.get(record.tag)
        if known is None or not math.isfinite(known.first):
            found[record.tag] = Growth(record.tag, value, step, value, step, value, step)
            continue
        if math.isfinite(value):
            known.last, known.last_step = value, step
        known.end, known.end_step = value, step
    grown = [one for one in found.values() if one.factor >= _MUCH]
    return sorted(grown, key=lambda one: _size(one.last) / max(_size(one.first), _LEAST), reverse=True)


def _size(value: float) -> float:
    return abs(value) if math.isfinite(value) else math.inf
