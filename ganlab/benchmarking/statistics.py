"""Means with Student's 95% interval, and ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Mean:
    """A mean over trials.

    Attributes:
        mean: The mean.
        low: The lower end of its 95% interval; None for one trial.
        high: The upper end.
        n: The number of trials.
    """

    mean: float
    low: float | None
    high: float | None
    n: int


def mean_of(values: Sequence[float]) -> Mean | None:
    """The mean `m` of n values with the interval `m ± t s / sqrt(n)`, t at 97.5% for n - 1 degrees of freedom.

    Args:
        values: Finite numbers; for none, there is no mean.
    """
    from scipy.special import stdtrit

    n = len(values)
    if not n:
        return None
    mean = math.fsum(values) / n
    if n == 1:
        return Mean(mean, None, None, 1)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = float(stdtrit(n - 1, 0.975)) * deviation / math.sqrt(n)
    return Mean(mean, mean - half, mean + half, n)


def ranks(values: Mapping[str, tuple[bool, float] | None], better: str) -> dict[str, float]:
    """Ranks by name: 1 is best, and equal ones share the mean of their ranks.

    Args:
        values: Whether all trials were completed, and the figure; None for one without a figure, which has no rank.
            Those with a trial that was not completed come after all others.
        better: `higher` or `lower`.
    """
    sign = -1.0 if better == "higher" else 1.0
    scored = {name: (not value[0], sign * value[1]) for name, value in values.items() if value is not None}
    found = {}
    for name, score in scored.items():
        before = sum(other < score for other in scored.values())
        same = sum(other == score for other in scored.values())
        found[name] = before + (same + 1) / 2
    return found
