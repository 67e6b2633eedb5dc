"""What a few runs say of a configuration: means with intervals, and how often one configuration is better."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A mean over runs with its 95% interval.

    Attributes:
        mean: Over the runs with a finite value.
        low: The interval's lower end; None for one run.
        high: The interval's upper end; None for one run.
        n: How many runs it is of.
        iqm: Their interquartile mean, where there are enough of them.
    """

    mean: float
    low: float | None
    high: float | None
    n: int
    iqm: float | None


@dataclass(frozen=True)
class Improvement:
    """How probable it is that a run of one configuration is better than a run of another.

    Attributes:
        probability: P(better) + P(equal) / 2 over all pairs of runs.
        low: The 95% interval's lower end; None where one side has a single run.
        high: The interval's upper end; None where one side has a single run.
        against: The other configuration's label.
    """

    probability: float
    low: float | None
    high: float | None
    against: str
