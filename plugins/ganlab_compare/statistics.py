"""Statistics of a few runs: means with intervals, and how often one configuration is better than another.

Intervals cover 95%. The kind of interval was chosen by how often each really covers; docs/comparing.md has the
figures.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from ganlab_compare.ranking import LEVEL, exact_p, runs_to_settle, smallest_p

# From this many runs on, a mean's interval is the bootstrap's. With fewer that is too narrow, and Student's is used.
BOOTSTRAP_FROM = 20

# From this many runs on there is an interquartile mean: a quarter of them is at least two runs.
IQM_FROM = 8

RESAMPLES = 10_000
_SEED = 0
_TAIL = 0.025

_NORMAL = NormalDist().inv_cdf(1 - _TAIL)

_HALVINGS = 60


@dataclass(frozen=True)
class Estimate:
    """A mean over runs with its 95% interval, or with their range where there is no interval.

    Attributes:
        mean: The mean over the runs with a finite value.
        low: The lower end of the interval or the range; None for one run.
        high: The upper end; None for one run.
        n: The number of runs.
        iqm: Their interquartile mean; None for fewer than `IQM_FROM`.
        iqm_low: The lower end of its own interval, the bootstrap's.
        iqm_high: The upper end.
        method: The method of the mean's interval, or "range" for the least and the largest value, of two runs or of
            equal values: two say nearly nothing about chance, and equal ones nothing. None for one run.
    """

    mean: float
    low: float | None
    high: float | None
    n: int
    iqm: float | None
    iqm_low: float | None = None
    iqm_high: float | None = None
    method: Literal["range", "student", "bootstrap"] | None = None


@dataclass(frozen=True)
class Improvement:
    """The probability that a run of one configuration is better than a run of another.

    Attributes:
        probability: P(better) + P(equal) / 2 over all pairs of runs.
        low: The 95% interval's lower end.
        high: The interval's upper end.
        against: The other configuration's label.
        p: How often chance alone gives a difference as large, by the exact test of Mann and Whitney.
        comparisons: The number of differences looked at, by which p is multiplied.
        smallest: The smallest p that so few runs can have.
        verdict: `better` or `worse` if p times the comparisons is 0.05 at most, else `open`.
        seeds: The number of runs on either side that would settle a difference of this size; None if it is settled, or
            if none is seen.
    """

    probability: float
    low: float
    high: float
    against: str
    p: float = 1.0
    comparisons: int = 1
    smallest: float = 1.0
    verdict: Literal["better", "worse", "open"] = "open"
    seeds: int | None = None


def estimate(values: Sequence[float], limits: tuple[float, float] = (-math.inf, math.inf)) -> Estimate | None:
    """The mean of some runs.

    Args:
        values: One per run; those that are not finite do not count.
        limits: The least and the largest value that there can be, where the interval ends.

    Returns:
        The estimate; None if no value is finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # a spread beyond float64 is an infinite interval
        return _estimate(np.array([value for value in values if math.isfinite(value)], np.float64), limits)


def _estimate(finite: np.ndarray, limits: tuple[float, float]) -> Estimate | None:
    n = len(finite)
    mean = float(finite.sum(dtype=np.longdouble)) / n if n else math.nan  # the same in any order of the values
    if not math.isfinite(mean):  # no values, or a sum beyond float64
        return None
    if n == 1:
        return Estimate(mean, None, None, 1, None)
    iqm = interquartile_mean(finite) if n >= IQM_FROM else None
    least, largest = float(finite.min()), float(finite.max())
    if n == 2 or least == largest:
        return Estimate(mean, least, largest, n, iqm, method="range")
    # Numbers that no run was recorded with are no limits, whatever run.json says.
    ends = min(limits[0], least), max(limits[1], largest)
    student = within(student_interval(finite), ends)
    if n < IQM_FROM:
        return Estimate(mean, *student, n, None, method="student")
    around_mean, around_iqm = bootstrap_intervals(finite)
    if n < BOOTSTRAP_FROM:
        return Estimate(mean, *student, n, iqm, *around_iqm, method="student")
    return Estimate(mean, *around_mean, n, iqm, *around_iqm, method="bootstrap")


def within(interval: tuple[float, float], limits: tuple[float, float]) -> tuple[float, float]:
    """The part of an interval that is possible."""
    return max(interval[0], limits[0]), min(interval[1], limits[1])


def student_interval(values: np.ndarray) -> tuple[float, float]:
    """Student's interval of a mean: `mean ± t s / sqrt(n)`.

    Args:
        values: `(n,)`, at least 2.
    """
    n = len(values)
    half = student_half(n) * float(values.std(ddof=1)) / math.sqrt(n)
    return float(values.mean()) - half, float(values.mean()) + half


def student_half(n: int) -> float:
    """Student's t at 97.5% for n values, at least 2."""
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, 1 - _TAIL))


def interquartile_mean(values: np.ndarray) -> float:
    """The mean of the middle half: a quarter of the values, rounded down, is left out on either side.

    Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice", section 4.3.

    Args:
        values: `(n,)`.
    """
    cut = len(values) // 4
    return float(np.sort(values)[cut : len(values) - cut].mean())


def bootstrap_intervals(*strata: np.ndarray) -> tuple[tuple[float, float], tuple[float, float]]:
    """The stratified percentile bootstrap's intervals of the mean and of the interquartile mean of all values.

    Args:
        *strata: `(n,)` each, resampled apart: the seeds of one task, or all values.
    """
    n = sum(map(len, strata))
    cut = n // 4
    # Sorted values indexed by sorted numbers give sorted resamples, so only the numbers have to be sorted.
    parts = [np.sort(values)[_resamples(len(values), place)] for place, values in enumerate(strata)]
    resampled = parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts, axis=1), axis=1)
    means, middles = resampled.mean(axis=1), resampled[:, cut : n - cut].mean(axis=1)
    return _percentiles(means), _percentiles(middles)


def improvement(
    mine: Sequence[float], theirs: Sequence[float], direction: str, against: str, comparisons: int = 1
) -> Improvement | None:
    """The probability that a run is better than one of another configuration.

    Values that are not finite are worse than all finite ones, and equal among themselves.

    Args:
        mine: One value per run.
        theirs: One value per run of the other configuration.
        direction: `max` or `min`: which values are better.
        against: The other configuration's label.
        comparisons: The number of differences looked at.

    Returns:
        The probability, which is the statistic of Mann and Whitney divided by the number of pairs, with Newcombe's
        interval; None if a side has fewer than two runs, with which it could only be 0, 1/2 or 1.
    """
    if min(len(mine), len(theirs)) < 2:
        return None
    ours, others = (
        np.array([_rank(value, direction) for value in side], np.float64)[:, None] for side in (mine, theirs)
    )
    wins = (ours > others.T) + 0.5 * (ours == others.T)
    probability = float(wins.mean())
    p = exact_p(ours.ravel().tolist(), others.ravel().tolist())
    settled = comparisons * p <= LEVEL
    return Improvement(
        probability,
        *newcombe_interval(probability, len(mine), len(theirs)),
        against,
        p=p,
        comparisons=comparisons,
        smallest=smallest_p(len(mine), len(theirs)),
        verdict=("better" if probability > 0.5 else "worse") if settled else "open",
        seeds=None if settled else _seeds(probability, len(mine), len(theirs), comparisons),
    )


def holm(p: Sequence[float]) -> list[float]:
    """P-values corrected for their number: the k-th smallest of m times `m - k + 1`, no smaller than the one before.

    Holm 1979, "A simple sequentially rejective multiple test procedure".
    """
    order = np.argsort(p, kind="stable")
    corrected = np.empty(len(p))
    corrected[order] = np.maximum.accumulate(np.asarray(p)[order] * np.arange(len(p), 0, -1))
    return list(np.minimum(corrected, 1.0).tolist())


def expected_best(values: Sequence[float], direction: str) -> list[float]:
    """The expected best of n settings drawn from those tried, for n from 1 to their number N.

    Dodge et al. 2019, "Show Your Work: Improved Reporting of Experimental Results", equations 4 to 6: from the worst to
    the best, the i-th is the best of n draws with probability `(i / N)^n - ((i - 1) / N)^n`.
    """
    ordered = np.sort(values) if direction == "max" else np.sort(values)[::-1]
    shares = np.arange(len(ordered) + 1) / len(ordered)
    return [float(np.diff(shares**n) @ ordered) for n in range(1, len(ordered) + 1)]


def newcombe_interval(probability: float, m: int, n: int) -> tuple[float, float]:
    """An interval of P(X > Y) that is valid for few values, even if all of one side are above all of the other.

    Newcombe 2006, "Confidence intervals for an effect size measure based on the Mann-Whitney statistic. Part 2",
    method 5: all p with `|probability - p| <= z sqrt(v(p))`, where `v(p) = p (1 - p) / (m n) *
    (1 + ((m + n) / 2 - 1) ((1 - p) / (2 - p) + p / (1 + p)))`.

    Args:
        probability: As estimated.
        m: Values on one side.
        n: Values on the other.
    """

    def inside(p: float) -> bool:
        ties = 1 + ((m + n) / 2 - 1) * ((1 - p) / (2 - p) + p / (1 + p))
        return abs(probability - p) <= _NORMAL * math.sqrt(max(p * (1 - p) * ties / (m * n), 0.0))

    def end(outside: float) -> float:
        if inside(outside):
            return outside
        within = probability
        for _ in range(_HALVINGS):
            middle = (within + outside) / 2
            within, outside = (middle, outside) if inside(middle) else (within, middle)
        return within

    return end(0.0), end(1.0)


def _seeds(probability: float, m: int, n: int, comparisons: int) -> int | None:
    """The number of runs that would settle the difference: more than there are, because those have not."""
    needed = runs_to_settle(probability, comparisons)
    return None if needed is None else max(needed, min(m, n) + 1)


def _rank(value: float, direction: str) -> float:
    if not math.isfinite(value):
        return -math.inf
    return value if direction == "max" else -value


@functools.lru_cache(maxsize=8)
def _resamples(n: int, stratum: int) -> np.ndarray:
    """`(RESAMPLES, n)` indices of values, each row sorted: the same for any values, so that tables are reproducible."""
    return np.sort(np.random.default_rng(_SEED + stratum).integers(n, size=(RESAMPLES, n)), axis=1)


def _percentiles(values: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(values, (_TAIL, 1 - _TAIL))
    return float(low), float(high)
