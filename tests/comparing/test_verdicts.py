"""The verdicts on a few seeds: exact p-values against scipy, and the words for them."""

import math

import numpy as np
import pytest
import scipy.stats
from ganlab_compare import compare, to_html
from ganlab_compare.ranking import exact_p, least_runs, runs_to_settle, smallest_p
from ganlab_compare.statistics import improvement
from reports import read
from synthetic import SETTINGS, WEIGHT, write_grid, write_run

MODES = "evaluation/mode_coverage/modes"


@pytest.mark.parametrize("sizes", [(1, 1), (2, 7), (4, 4), (9, 5), (12, 12), (30, 25)])
def test_p_is_scipys_exact_one(sizes):
    rng = np.random.default_rng(0)
    mine, theirs = rng.normal(0.8, 1, sizes[0]), rng.normal(0, 1, sizes[1])
    expected = scipy.stats.mannwhitneyu(mine, theirs, method="exact").pvalue
    assert exact_p(mine, theirs) == pytest.approx(expected, rel=1e-9)
    assert exact_p(theirs, mine) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("sizes", [(2, 3), (4, 4), (3, 6), (5, 5)])
def test_p_with_ties_is_that_of_all_permutations(sizes):
    rng = np.random.default_rng(0)
    mine, theirs = (rng.integers(0, 4, size).astype(float) for size in sizes)

    def ranksum(x, y, axis):
        return scipy.stats.mannwhitneyu(x, y, axis=axis, method="asymptotic").statistic

    expected = scipy.stats.permutation_test((mine, theirs), ranksum, n_resamples=np.inf, vectorized=True).pvalue
    assert exact_p(mine, theirs) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("m", "n", "p"), [(1, 1, 1), (2, 2, 1 / 3), (3, 3, 0.1), (4, 4, 2 / 70), (2, 5, 2 / 21)])
def test_the_smallest_p_is_that_of_complete_separation(m, n, p):
    assert smallest_p(m, n) == pytest.approx(p)
    assert exact_p(range(m), range(m, m + n)) == pytest.approx(p)


def test_p_of_many_equal_runs_is_one():
    assert exact_p([1.0] * 60, [1.0] * 60) == exact_p([1.0] * 6, [1.0] * 6) == 1.0


def test_how_many_runs_separate_completely_beyond_chance():
    # 2 / C(2n, n): 1/3, 1/10, 1/35, 1/126, 1/462, 1/1716. Times 3 and times 15 differences: below 0.05 from 5 and 6 on.
    assert [least_runs(comparisons) for comparisons in (1, 3, 15)] == [4, 5, 6]
    assert runs_to_settle(1.0) == runs_to_settle(0.0) == 4
    assert runs_to_settle(0.5) is None


@pytest.mark.parametrize("probability", [0.75, 0.85])
def test_the_advised_number_of_runs_finds_the_difference_four_times_in_five(probability):
    n = runs_to_settle(probability)
    # Normal values whose means are this far apart are better with that probability.
    shift = math.sqrt(2) * scipy.stats.norm.ppf(probability)
    rng = np.random.default_rng(0)
    mine, theirs = rng.normal(shift, 1, (2000, n)), rng.normal(0, 1, (2000, n))
    found = scipy.stats.mannwhitneyu(mine, theirs, axis=1, method="exact").pvalue <= 0.05
    # Noether's number is of large samples, and of few runs on the safe side; a standard error here is 0.009.
    assert 0.77 <= found.mean() <= 0.92


def test_diverged_runs_count_in_the_verdict():
    found = improvement([math.nan] * 4, [1.0, 2.0, 3.0, 4.0], "min", "x")
    assert (found.probability, found.verdict) == (0.0, "worse")
    assert found.p == pytest.approx(2 / 70)


def write(root, figures):
    for weight, values in figures.items():
        write_grid(root, [weight], len(values), evaluation=lambda w, s: {"mode_coverage/modes": (figures[w][s],)})
    return root


def names(comparison):
    return {one.settings[WEIGHT]: one.label for one in comparison.configurations}


def test_two_seeds_are_inconclusive_however_far_apart(tmp_path):
    found = compare([write(tmp_path, {0.1: (8.0, 7.0), 10.0: (1.0, 2.0)})])
    low, high = names(found)[0.1], names(found)[10.0]
    better = found.improvement[high, MODES]
    assert (better.probability, better.verdict, better.seeds) == (0.0, "open", 4)
    assert better.p == better.smallest == pytest.approx(1 / 3)
    assert found.leading == {}
    assert found.verdicts[MODES] == (
        f"Whether {high} differs from {low} may be chance: with 2 and 2 runs even complete separation has p = 0.33. At "
        f"least 4 seeds of each are needed. Seeds of each that would settle this difference: 4 of {high}, and as many "
        f"of {low}."
    )


def test_four_seeds_that_separate_settle_it(tmp_path):
    found = compare([write(tmp_path, {0.1: (8.0, 7.0, 7.5, 7.2), 10.0: (1.0, 2.0, 3.0, 2.5)})])
    low, high = names(found)[0.1], names(found)[10.0]
    assert found.improvement[high, MODES].verdict == "worse"
    assert found.improvement[high, MODES].seeds is None
    assert found.leading == {MODES: low}
    assert found.verdicts[MODES] == f"{low} is best: every other row is worse, beyond chance."


def test_more_rows_take_more_seeds(tmp_path):
    # The same four against four, but one of three differences: 3 x 2/70 = 0.086.
    figures = {0.1: (8.0, 7.0, 7.5, 7.2), 1.0: (1.5, 1.6, 1.7, 1.8), 10.0: (1.0, 2.0, 3.0, 2.5)}
    found = compare([write(tmp_path, figures)])
    assert {one.verdict for (_, tag), one in found.improvement.items() if tag == MODES} == {"open"}
    assert {one.seeds for (_, tag), one in found.improvement.items() if tag == MODES} == {5}
    assert found.leading == {}
    # Against one row that was named beforehand there are two differences: 2 x 2/70 = 0.057.
    assert compare([tmp_path], against=names(found)[0.1]).improvement[names(found)[1.0], MODES].comparisons == 2


def test_equal_rows_show_no_difference_and_single_runs_are_inconclusive(tmp_path):
    figures = {0.1: (8.0, 7.0, 8.0, 7.0), 1.0: (7.0, 8.0, 7.0, 8.0), 10.0: (2.0,)}
    found = compare([write(tmp_path, figures)])
    label = names(found)
    text = found.verdicts[MODES]
    reference = next(one.against for (_, tag), one in found.improvement.items() if tag == MODES)
    other = label[1.0] if reference == label[0.1] else label[0.1]
    assert f"No difference from {reference} is seen: {other}." in text
    assert f"Nothing can be concluded of {label[10.0]}: with fewer than two runs" in text
    single = compare([write(tmp_path / "single", {0.1: (8.0,), 10.0: (1.0,)})]).verdicts[MODES]
    assert single.startswith("Nothing can be concluded")
    assert "4 seeds of each" in single


def test_a_single_run_with_the_best_mean_hides_no_difference(tmp_path):
    figures = {0.1: (8.0, 7.0, 7.5, 7.2), 1.0: (1.5, 1.6, 1.7, 1.8), 10.0: (9.0,)}
    found = compare([write(tmp_path, figures)])
    label = names(found)
    assert found.improvement[label[1.0], MODES].against == label[0.1]
    assert found.improvement[label[1.0], MODES].verdict == "worse"
    assert f"Nothing can be concluded of {label[10.0]}: with fewer than two runs" in found.verdicts[MODES]


def test_the_report_has_the_verdicts_and_their_rule(tmp_path):
    few, many = tmp_path / "few", tmp_path / "many"
    write(few, {0.1: (8.0, 7.0), 10.0: (1.0, 2.0)})
    write(many, {0.1: (8.0, 7.0, 7.5, 7.2), 10.0: (1.0, 2.0, 3.0, 2.5)})
    page = read(to_html(compare([few])))
    section = page.one("section", id="improvement")
    assert "may be chance: with" in section.text
    assert "exact two-sided test of Mann and Whitney" in section.text
    assert "open, p 0.33: 4 seeds" in section.text
    assert "*" not in page.one("section", id="results").one("tbody").text
    settled = read(to_html(compare([many])))
    assert settled.one("section", id="results").one("tbody").text.count("*") == 1
    assert "worse, p 0.029" in settled.one("section", id="improvement").text


def test_bars_are_labelled_as_logarithmic_and_cut(tmp_path):
    # Means 0.01 and 100 span four decades, and the interval of the first reaches below zero.
    write(tmp_path, {0.1: (0.001, 0.019), 10.0: (99.0, 101.0)})
    results = read(to_html(compare([tmp_path], metrics=["modes"]))).one("section", id="results")
    (head,) = [head for head in results.all("th", scope="col") if "modes" in head.text]
    assert "bars: logarithmic, " in head.text
    assert "cut, with an arrow" in head.text
    assert len(results.all("path", class_="beyond")) == 1
    linear = tmp_path / "linear"
    write(linear, {0.1: (8.0, 7.0), 10.0: (1.0, 2.0)})
    results = read(to_html(compare([linear], metrics=["modes"]))).one("section", id="results")
    assert "logarithmic" not in results.one("thead").text
    assert not results.all("path", class_="beyond")


def test_rows_with_different_evaluator_settings_are_reported_as_not_comparable(tmp_path):
    for updates in (1, 500):
        write_run(tmp_path / str(updates), settings={**SETTINGS, "features.classifier.updates": updates})
    (problem,) = [said for said in compare([tmp_path]).problems if "not comparable" in said]
    assert problem.startswith("Configurations differ in features.classifier.updates, which evaluators measure by")


def test_separation_is_judged_by_the_runs_that_have_a_figure(tmp_path):
    for weight, values in {0.1: (8, 7, 6), 1.0: (1, 2), 10.0: (3, 4, 5), 30.0: (None,) * 3}.items():
        for seed, value in enumerate(values):
            evaluation = {} if value is None else {"mode_coverage/modes": (float(value),)}
            settings = {**SETTINGS, WEIGHT: weight}
            write_run(tmp_path / f"{weight}-{seed}", seed=seed, settings=settings, metrics={}, evaluation=evaluation)
    text = compare([tmp_path], metrics=[MODES]).verdicts[MODES]
    for count, p in ((2, 2 / 10), (3, 2 / 20)):
        assert f"with {count} and 3 runs even complete separation has p = {p:.2g}, times 3 " in text
    assert "with fewer than two runs that have it" in text


def test_seeds_to_settle_are_noethers_however_many():
    assert runs_to_settle(0.52) == math.ceil((1.959964 + 0.841621) ** 2 / 6 / 0.02**2)
