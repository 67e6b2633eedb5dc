"""Means, intervals and probabilities, against scipy and numbers by hand."""

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from ganlab_compare.statistics import (
    bootstrap_intervals,
    estimate,
    improvement,
    interquartile_mean,
    newcombe_interval,
    student_interval,
)


def draws(n, seed=0):
    return np.random.default_rng(seed).lognormal(size=n)


def test_three_runs_by_hand():
    # Mean 2, deviation 1, t at 97.5% for two degrees of freedom 4.302653: 2 -+ 4.302653 / sqrt(3).
    found = estimate([1.0, 2.0, 3.0])
    assert (found.mean, found.n, found.iqm, found.method) == (2.0, 3, None, "student")
    assert found.low == pytest.approx(2 - 2.484138, abs=1e-6)
    assert found.high == pytest.approx(2 + 2.484138, abs=1e-6)


def test_from_twenty_runs_the_interval_is_the_bootstraps():
    values = draws(20)
    expected = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=50_000, method="percentile", rng=np.random.default_rng(3)
    ).confidence_interval
    found = estimate(values)
    assert (found.method, found.n) == ("bootstrap", 20)
    # Two resamplings with other numbers: ends of 10,000 resamples are known to about 2% of the width.
    width = expected.high - expected.low
    assert found.low == pytest.approx(expected.low, abs=0.03 * width)
    assert found.high == pytest.approx(expected.high, abs=0.03 * width)
    assert estimate(values[:19]).method == "student"


@pytest.mark.parametrize("n", [8, 11, 41])
def test_the_interquartile_mean_is_scipys_trimmed_mean(n):
    values = draws(n)
    assert interquartile_mean(values) == pytest.approx(scipy.stats.trim_mean(values, 0.25), rel=1e-12)
    assert estimate(values).iqm == interquartile_mean(values)


def test_the_interquartile_mean_by_hand_and_from_eight_runs_on():
    # Of eight, two go on either side: the mean of 3, 4, 5, 6.
    assert estimate([100.0, 1, 2, 3, 4, 5, 6, -50]).iqm == pytest.approx((2 + 3 + 4 + 5) / 4)
    assert estimate([1.0, 2, 3, 4, 5, 6, 7]).iqm is None


def test_the_interval_of_the_interquartile_mean_is_the_bootstraps():
    values = draws(12, seed=5)
    expected = scipy.stats.bootstrap(
        (values,),
        lambda x, axis: scipy.stats.trim_mean(x, 0.25, axis=axis),
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(3),
    ).confidence_interval
    width = expected.high - expected.low
    found = estimate(values)
    assert (found.iqm_low, found.iqm_high) == bootstrap_intervals(values)[1]
    assert found.iqm_low == pytest.approx(expected.low, abs=0.04 * width)
    assert found.iqm_high == pytest.approx(expected.high, abs=0.04 * width)


def test_the_bootstrap_is_reproducible_and_independent_of_order():
    values = draws(25)
    first, again = estimate(values), estimate(values[::-1])
    assert (again.low, again.high) == (first.low, first.high)
    assert (again.iqm_low, again.iqm_high) == (first.iqm_low, first.iqm_high)


def test_one_run_has_no_interval_and_no_runs_have_no_estimate():
    found = estimate([3.0])
    assert (found.mean, found.low, found.high, found.n, found.method) == (3.0, None, None, 1, None)
    assert estimate([]) is None
    assert estimate([math.nan, math.inf]) is None


def test_values_that_are_not_finite_do_not_count():
    assert estimate([1.0, math.nan, 3.0, math.inf, 2.0, -math.inf]) == estimate([1.0, 3.0, 2.0])


def test_equal_means_are_equal_to_the_last_bit():
    assert estimate([0.012, 0.008, 0.0, 0.0]).mean == estimate([0.01, 0.008, 0.002, 0.0]).mean


def test_numbers_beyond_float64_have_no_mean():
    assert estimate([1.7e308, 1.7e308]) is None


@pytest.mark.parametrize("sizes", [(2, 2), (5, 3), (10, 12), (30, 25)])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_probability_is_mann_whitneys(sizes, seed):
    rng = np.random.default_rng(seed)
    mine, theirs = (rng.integers(0, 6, size).astype(float) for size in sizes)  # with ties
    expected = scipy.stats.mannwhitneyu(mine, theirs).statistic / (sizes[0] * sizes[1])
    assert improvement(list(mine), list(theirs), "max", "x").probability == pytest.approx(expected)
    assert improvement(list(mine), list(theirs), "min", "x").probability == pytest.approx(1 - expected)


def test_a_run_that_is_not_finite_is_worse_than_any_that_is():
    # Of four pairs of (1, NaN) over (0, inf), larger being better: 1 > 0, 1 > inf's, NaN = inf's, NaN < 0.
    assert improvement([1.0, math.nan], [0.0, math.inf], "max", "x").probability == 2.5 / 4
    assert improvement([1.0, math.nan], [0.0, -math.inf], "min", "x").probability == 1.5 / 4


@pytest.mark.parametrize("sides", [([1.0], [2.0, 3.0]), ([1.0, 2.0], [3.0]), ([], [1.0, 2.0])])
def test_a_single_run_has_no_probability(sides):
    assert improvement(*sides, "max", "x") is None


@pytest.mark.parametrize(("m", "n"), [(2, 2), (3, 17), (40, 5)])
@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 0.85, 1.0])
def test_newcombes_interval_solves_its_equation(m, n, probability):
    def beyond(p):
        variance = p * (1 - p) * (1 + ((m + n) / 2 - 1) * ((1 - p) / (2 - p) + p / (1 + p))) / (m * n)
        return abs(p - probability) - scipy.stats.norm.ppf(0.975) * math.sqrt(variance)

    low, high = newcombe_interval(probability, m, n)
    assert (low == 0.0) == (probability == 0.0)
    assert (high == 1.0) == (probability == 1.0)
    inner = min(max(probability, 1e-9), 1 - 1e-9)
    if low:
        assert low == pytest.approx(scipy.optimize.brentq(beyond, 1e-12, inner), abs=1e-7)
    if high < 1:
        assert high == pytest.approx(scipy.optimize.brentq(beyond, inner, 1 - 1e-12), abs=1e-7)


def test_an_interval_of_few_runs_is_not_certain_if_all_are_better():
    # The bootstrap's would be [1, 1], whatever the number of runs.
    low, high = newcombe_interval(1.0, 3, 3)
    assert high == 1.0
    assert 0.4 < low < 0.6
    assert newcombe_interval(1.0, 10, 10)[0] > low


def test_intervals_cover_as_documented():
    rng = np.random.default_rng(7)
    samples = rng.normal(size=(1500, 5))
    student = np.mean([low <= 0 <= high for low, high in map(student_interval, samples)])
    assert student == pytest.approx(0.95, abs=0.02)
    few = np.mean([low <= 0 <= high for low, high in (bootstrap_intervals(row)[0] for row in samples[:400])])
    assert few < 0.9


def test_an_interval_ends_at_what_is_possible():
    # 6 -+ 4.302653 * 2 / sqrt(3): Student's interval of 4, 6, 8 modes of 8 is [1.03, 10.97].
    low = 6 - 4.302653 * 2 / math.sqrt(3)
    found = estimate([4.0, 6.0, 8.0], (0.0, 8.0))
    assert (found.low, found.high, found.method) == (pytest.approx(low, abs=1e-5), 8.0, "student")
    assert estimate([0.0, 0.0, 0.1], (0.0, 1.0)).low == 0.0
    # Limits that a run exceeds are none.
    assert estimate([4.0, 6.0, 9.0], (0.0, 8.0)).high == 9.0
