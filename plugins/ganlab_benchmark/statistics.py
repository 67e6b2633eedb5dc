"""Means with 95% intervals over seeds, and ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Mean:
    """A mean over trials.

    Attributes:
        mean: The mean.
        low: The lower end of its 95% interval; None where a group has one trial.
        high: The upper end.
        n: The number of trials.
    """

    mean: float
    low: float | None
    high: float | None
    n: int


def mean_of(groups: Iterable[Sequence[float]]) -> Mean | None:
    """The mean of the means of groups, with its 95% interval over the trials within groups.

    The seeds of a problem are a group: that one problem is harder than another widens no interval. With n values and
    deviation s in each of k groups, the interval is `m ± t sqrt(sum(s^2 / n)) / k`, where t is Student's with Welch's
    degrees of freedom (Welch 1947, "The generalization of Student's problem when several different population variances
    are involved"). For one group it is Student's interval.

    Args:
        groups: Finite numbers; empty groups do not count. Without any number, or with numbers whose squares are beyond
            all floats, there is no mean.
    """
    try:
        return _mean_of(groups)
    except OverflowError:
        return None


def _mean_of(groups: Iterable[Sequence[float]]) -> Mean | None:
    from scipy.special import stdtrit

    filled = [values for values in groups if values]
    if not filled:
        return None
    n, k = sum(map(len, filled)), len(filled)
    means = [math.fsum(values) / len(values) for values in filled]
    mean = math.fsum(means) / k
    if min(map(len, filled)) == 1:
        return Mean(mean, None, None, n)
    errors = [
        math.fsum((value - each) ** 2 for value in values) / (len(values) - 1) / len(values)
        for values, each in zip(filled, means, strict=True)
    ]
    total = math.fsum(errors)
    if not total:
        return Mean(mean, mean, mean, n)
    freedom = total**2 / math.fsum(e**2 / (len(values) - 1) for values, e in zip(filled, errors, strict=True))
    half = float(stdtrit(freedom, 0.975)) * math.sqrt(total) / k
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
    by_name = {}
    for name, score in scored.items():
        before = sum(other < score for other in scored.values())
        same = sum(other == score for other in scored.values())
        by_name[name] = before + (same + 1) / 2
    return by_name
