"""Statistics of a benchmark, held against scipy and numbers worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats
from ganlab_benchmark.child import middle
from ganlab_benchmark.results import _certificate, _over_seeds, reaching
from ganlab_benchmark.rows import Row, figure_text, ordered, ranks_in
from ganlab_benchmark.statistics import mean_of, ranks
from small_suites import outcome


@pytest.mark.parametrize("n", [2, 3, 6, 40])
def test_intervals_are_those_of_scipy(n):
    values = np.random.default_rng(n).normal(3.0, 2.0, n)
    found = mean_of([values.tolist()])
    low, high = scipy.stats.t.interval(0.95, n - 1, loc=values.mean(), scale=scipy.stats.sem(values))
    np.testing.assert_allclose([found.mean, found.low, found.high], [values.mean(), low, high], rtol=1e-12)
    assert found.n == n


def test_one_trial_has_no_interval_and_none_no_mean():
    one = mean_of([[2.0]])
    assert (one.low, one.high, one.mean) == (None, None, 2.0)
    assert mean_of([[], []]) is None


def test_intervals_over_the_seeds_of_two_problems_are_welchs():
    rng = np.random.default_rng(0)
    easy, hard = rng.normal(0.9, 0.01, 3), rng.normal(0.2, 0.1, 4)
    # scipy has the interval of a difference, which is twice as wide as that of the mean of the two.
    welch = scipy.stats.ttest_ind(easy, hard, equal_var=False).confidence_interval()
    found = mean_of([easy.tolist(), [], hard.tolist()])
    np.testing.assert_allclose(found.mean, (easy.mean() + hard.mean()) / 2, rtol=1e-12)
    np.testing.assert_allclose(found.high - found.low, (welch.high - welch.low) / 2, rtol=1e-12)
    assert found.n == 7
    same = mean_of([[1.0, 1.0], [3.0, 3.0]])
    assert (same.low, same.mean, same.high) == (2.0, 2.0, 2.0)
    assert mean_of([[1.0, 2.0], [3.0]]).low is None


def test_equal_figures_share_their_ranks_and_incomplete_ones_come_last():
    values = {"a": (True, 1.0), "b": (True, 3.0), "c": (True, 3.0), "d": None, "e": (False, 9.0)}
    assert ranks(values, "higher") == {"b": 1.5, "c": 1.5, "a": 3.0, "e": 4.0}
    assert ranks(values, "lower") == {"a": 1.0, "b": 2.5, "c": 2.5, "e": 4.0}


@pytest.mark.parametrize(
    ("means", "better", "count"),
    [
        ([0.8, 0.73, 0.71, None], "higher", 2),  # 0.9 x 0.8 = 0.72
        ([10.0, 11.1, 11.2], "lower", 2),  # 10 / 0.9 = 11.11
        ([-1.0, -1.01], "higher", 1),
        ([None, None], "higher", None),
    ],
)
def test_the_fraction_of_settings_that_come_near_the_best(means, better, count):
    assert reaching(means, better, 0.9) == count


def test_the_cost_is_the_median_with_quartiles():
    ratios = [1.5, 1.4, 1.7, 1.6, 9.0]
    low, median, high = np.percentile(ratios, [25, 50, 75])
    assert middle(ratios) == {"ratio": median, "low": low, "high": high}
    assert middle([2.0]) == {"ratio": 2.0, "low": 2.0, "high": 2.0}


def test_a_tasks_rank_orders_the_means_of_the_columns_ranks():
    def row(name, cosine, error):
        figures = {**outcome(cosine)["figures"], **outcome(error, key="error")["figures"]}
        return Row(name, "", {"tasks": {"w1": {"status": "completed", "reason": "", "figures": figures}}})

    rows = [row("a", 0.9, 0.3), row("b", 0.8, 0.1), row("c", 0.7, 0.2), row("d", None, 0.05)]
    columns = {"cosine": {"better": "higher"}, "error": {"better": "lower"}}
    each, places = ranks_in(rows, "w1", columns)
    # a: 1 and 4, b: 2 and 2, c: 3 and 3; d has no cosine, hence no rank of its own, but is first by its error.
    assert each == [{"cosine": 1, "error": 4}, {"cosine": 2, "error": 2}, {"cosine": 3, "error": 3}, {"error": 1}]
    assert places == [2, 1, 3, None]
    assert [rows[n].name for n in ordered(rows, places)] == ["b", "a", "c", "d"]


def test_figures_as_text():
    assert (
        figure_text({"mean": 1.045, "low": 1.0451, "high": 1.0532, "interval": "quartiles"}) == "1.045 (1.045 to 1.053)"
    )
    assert (figure_text({"mean": 8.0, "low": None, "high": None}), figure_text(None)) == ("8", "-")


@pytest.mark.parametrize(
    ("values", "limits", "ends", "kind", "text"),
    [
        ([("a", 4.0), ("a", 8.0)], (0.0, 8.0), (4.0, 8.0), "range", "6 (range 4 to 8)"),
        ([("a", 8.0), ("a", 8.0)], (0.0, 8.0), (8.0, 8.0), "range", "8 (range 8 to 8)"),
        ([("a", 8.0), ("a", 8.0), ("b", 4.0), ("b", 4.0)], (0.0, 8.0), (6.0, 6.0), "range", "6 (range 6 to 6)"),
        ([("a", 4.0), ("a", 6.0), ("a", 8.0)], (0.0, 8.0), (1.0317, 8.0), "limited", "6 [1.032, 8]"),
        ([("a", 4.0), ("a", 6.0), ("a", 8.0)], (-np.inf, np.inf), (1.0317, 10.968), "student", "6 ± 5"),
        ([("a", 4.0)], (0.0, 8.0), (None, None), None, "4"),
    ],
)
def test_figures_of_two_seeds_have_a_range_and_others_end_where_they_can(values, limits, ends, kind, text):
    found = _over_seeds(values, limits)
    assert (found["low"], found["high"]) == pytest.approx(ends, abs=1e-3)
    assert found["interval"] == kind
    assert figure_text(found) == text


def test_a_bound_is_never_below_what_an_attack_found():
    pairs = {f"problem/{seed}": {"lower": 1.0, "upper": upper} for seed, upper in enumerate((1.0, 1.5, 9.2))}
    folder = SimpleNamespace(known=lambda name: {"certificates": {"steep": pairs}})
    task = SimpleNamespace(name="steep", figures={"ratio": None})
    ratio = _certificate(None, folder, SimpleNamespace(name="mine"), task)["figures"]["ratio"]
    assert (ratio["low"], ratio["interval"]) == (1.0, "limited")
    assert ratio["mean"] == pytest.approx(3.9)
