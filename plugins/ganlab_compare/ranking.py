"""Tests whether a difference between two groups of runs may be chance, and how many runs would settle it.

The test is that of Mann and Whitney, exact: over all ways to assign the runs to two groups of these sizes, with ties
as they are. It assumes nothing about how values are distributed, and shows in advance how much few runs can prove: for
two against two, complete separation happens by chance once in three times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

# A difference is called real if chance alone gives one as large at most this often.
LEVEL = 0.05

# How often a true difference of the size seen would be found with the number of runs that is advised.
POWER = 0.8

# With more runs than this in total the normal approximation is as good, and counting takes seconds.
_COUNTED = 100

# More seeds than anybody will train.
MOST_SEEDS = 1000


def exact_p(mine: Sequence[float], theirs: Sequence[float]) -> float:
    """The two-sided p-value of the test of Mann and Whitney.

    Args:
        mine: Values of one group, at least one; infinite ones are larger or smaller than all others.
        theirs: Values of the other group, at least one.

    Returns:
        Twice the smaller tail, 1 at most: exact up to 100 values in total, above that by the normal approximation with
        corrections for ties and continuity.
    """
    few, many = sorted((list(mine), list(theirs)), key=len)
    doubled = _doubled_ranks(np.array([*few, *many], np.float64))
    if len(doubled) > _COUNTED:
        from scipy.stats import mannwhitneyu

        with np.errstate(invalid="ignore"):  # without any spread the p-value is not a number
            approximate = float(mannwhitneyu(doubled[: len(few)], doubled[len(few) :], method="asymptotic").pvalue)
        return 1.0 if math.isnan(approximate) else approximate
    # Not scipy's: its exact test is without ties, and its permutations of ten against ten with ties take seconds.
    rank_sum = int(doubled[: len(few)].sum())
    ways = _ways(doubled, len(few))
    total = ways.sum()
    return float(min(1.0, 2.0 * min(ways[: rank_sum + 1].sum(), ways[rank_sum:].sum()) / total))


def smallest_p(m: int, n: int) -> float:
    """The smallest p-value that groups of m and n runs can have: that of complete separation."""
    return min(1.0, 2.0 / math.comb(m + n, m))


def least_runs(comparisons: int = 1) -> int:
    """The number of runs on either side that complete separation needs to be called real.

    Args:
        comparisons: The number of differences looked at, by which p-values are multiplied.
    """
    n = 1
    while comparisons * smallest_p(n, n) > LEVEL:
        n += 1
    return n


def runs_to_settle(probability: float, comparisons: int = 1) -> int | None:
    """The number of runs on either side that would settle a difference of the size seen, four times in five.

    Noether 1987, "Sample size determination for some common nonparametric tests", for groups of one size:
    `n = (z_a + z_b)^2 / (6 (p - 1/2)^2)`. For complete separation it is `least_runs`, if it stays complete.

    Args:
        probability: The observed probability that a run of one group is better than one of the other.
        comparisons: The number of differences looked at.

    Returns:
        The number; None if no difference is seen.
    """
    distance, least = abs(probability - 0.5), least_runs(comparisons)
    if distance == 0.0:
        return None
    if distance == 0.5:
        return least
    normal = NormalDist()
    quantiles = normal.inv_cdf(1 - LEVEL / (2 * comparisons)) + normal.inv_cdf(POWER)
    return max(least, math.ceil(quantiles**2 / (6 * distance**2)))


def _doubled_ranks(values: np.ndarray) -> np.ndarray:
    """Twice the ranks from 1 on, so that those of ties, which are means, are whole numbers too: int64, `(n,)`."""
    ordered = np.sort(values)
    below = np.searchsorted(ordered, values, side="left")
    return below + np.searchsorted(ordered, values, side="right") + 1


def _ways(doubled: np.ndarray, count: int) -> np.ndarray:
    """The number of ways in which `count` of the ranks have each sum, float64 by that sum: a product of polynomials."""
    highest = int(np.sort(doubled)[len(doubled) - count :].sum())
    ways = np.zeros((count + 1, highest + 1))
    ways[0, 0] = 1.0
    for rank in doubled.tolist():
        for chosen in range(count, 0, -1):
            ways[chosen, rank:] += ways[chosen - 1, : highest + 1 - rank]
    return ways[count]
