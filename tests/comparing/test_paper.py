"""`ganlab compare --paper`: against rliable, scipy and enumeration, and its files, however runs are named."""

import itertools
import json
import math
import re
import shutil
import subprocess

import numpy as np
import pytest
import scipy.stats
from command_lines import command
from ganlab_compare import compare
from ganlab_compare.doors import latex_escaped, markdown_escaped
from ganlab_compare.paper import level_text, paper
from ganlab_compare.statistics import bootstrap_intervals, expected_best, holm, interquartile_mean
from synthetic import SETTINGS, write_run

from ganlab import ConfigError

RATE, MODES = "optimizers.adam.learning_rate", "evaluation/mode_coverage/modes"

# Five runs of three tasks. rliable 1.2.0 has for them, with the same 10,000 resamples: metrics.aggregate_iqm, and
# StratifiedBootstrap.conf_int(aggregate_iqm, method="percentile").
SCORES = np.array(
    [[7.698, 0.078, 1.519], [0.567, 0.636, 0.806], [0.133, 0.793, 0.421], [27.743, 1.253, 0.703], [0.755, 0.513, 0.348]]
)
IQM, INTERVAL = 0.7163333333333334, (0.48088333333333333, 1.7374833333333328)


def write(root, figures, **options):
    """Runs with the figures by seed of each (constraint, learning rate, dataset); None diverged before it had one."""
    for place, ((constraint, rate, data), by_seed) in enumerate(figures.items()):
        for seed, figure in by_seed.items():
            settings = {**SETTINGS, "constraints": constraint, "dataset": data}
            settings |= {"optimizers.adam.beta_1": 0.0} | ({} if rate is None else {RATE: rate})
            diverged = figure is None or not math.isfinite(figure)
            write_run(
                root / f"{place}-s{seed}",
                seed=seed,
                settings={**settings, "experiment.batch_size": len(data)},
                evaluation={} if figure is None else {"mode_coverage/modes": (figure,)},
                metrics={},
                status="diverged" if diverged else "completed",
                **{name: values[data] for name, values in options.items()},
            )
    return compare([root])


def by_seed(values, first=0):
    return dict(enumerate((None if value is None else float(value) for value in values), first))


def test_the_interquartile_mean_and_its_stratified_interval_are_rliables():
    assert interquartile_mean(SCORES.ravel()) == pytest.approx(IQM, rel=1e-9)
    assert scipy.stats.trim_mean(SCORES, 0.25, axis=None) == pytest.approx(IQM, rel=1e-9)
    assert bootstrap_intervals(*SCORES.T)[1] == pytest.approx(INTERVAL, rel=1e-9)


def test_holms_correction_is_that_of_statsmodels_and_p_shows_its_side_of_the_level():
    # statsmodels.stats.multitest.multipletests(p, method="holm")
    p = [0.011, 0.02, 0.04, 0.04, 0.3, 0.9, 0.001]
    assert holm(p) == pytest.approx([0.066, 0.1, 0.16, 0.16, 0.6, 0.9, 0.007], rel=1e-12)
    assert holm([]) == []
    assert [*map(level_text, (0.0504, 0.0496, 0.05, 0.023456, 1.0))] == ["0.0504", "0.05", "0.05", "0.023", "1"]


@pytest.mark.parametrize(("direction", "best"), [("max", max), ("min", min)])
def test_the_expected_best_is_the_mean_over_all_draws(direction, best):
    values = [0.3, -1.0, 2.5, 0.3]
    every = [np.mean([best(draw) for draw in itertools.product(values, repeat=n)]) for n in range(1, 5)]
    assert expected_best(values, direction) == pytest.approx(every, rel=1e-12)


def test_rows_are_parts_and_show_their_best_setting_compared_by_seed(tmp_path):
    rng = np.random.default_rng(0)
    noise = rng.normal(size=5)
    values = {("a", 0.1): noise + 1, ("a", 0.2): noise + 3 + 0.1 * rng.normal(size=5)}
    values |= {("b", 0.1): noise, ("b", 0.2): -noise}
    comparison = write(tmp_path, {(*key, "digits"): by_seed(of) for key, of in values.items()})
    (table,) = paper(comparison).tables
    assert [(row.label, row.setting, row.figures) for row in table.rows] == [
        ("a", "learning_rate=0.2", (5,)),
        ("b", f"learning_rate={0.1 if noise.mean() > 0 else 0.2}", (5,)),
    ]
    mine, theirs = (noise if noise.mean() > 0 else -noise), values["a", 0.2]
    expected = scipy.stats.ttest_rel(mine, theirs)
    (one,) = table.differences
    assert (one.label, one.against, one.test, one.pairs, one.choices) == ("b", "a", "paired", 5, 2)
    assert (one.low, one.high) == pytest.approx(tuple(expected.confidence_interval()), rel=1e-9)
    assert one.corrected == pytest.approx(2 * expected.pvalue, rel=1e-9)
    assert one.verdict == "worse"
    assert table.rows[0].iqm == pytest.approx(scipy.stats.trim_mean(values["a", 0.2], 0.25), rel=1e-9)
    means = sorted(of.mean() for (name, _), of in values.items() if name == "a")
    assert table.rows[0].curve == pytest.approx((np.mean(means), 0.25 * means[0] + 0.75 * means[1]), rel=1e-9)
    # With --by all four are rows: nothing is tuned, and there are six differences, or three from a named row.
    by = ["constraints", "learning_rate"]
    (table,) = paper(comparison, by=by).tables
    assert "tuned" not in paper(comparison, by=by).text("markdown")  # rows that are settings were, perhaps, searched
    assert {one.choices for one in table.differences} == {1}
    assert [one.corrected for one in table.differences] == pytest.approx(holm([one.p for one in table.differences]))
    assert len(table.differences) == 6
    assert len(paper(comparison, by=by, against="b learning_rate=0.1").tables[0].differences) == 3


def test_seeds_that_are_not_shared_and_runs_that_diverged(tmp_path):
    values = {"a": [1.0, 2.0, 4.0, 3.5], "b": [6.0, 7.0, 6.5, 8.0, 7.5], "c": [math.nan, 9.0, 9.5, 9.1, 9.2]}
    comparison = write(tmp_path, {(k, 0.1, "digits"): by_seed(v, 10 * n) for n, (k, v) in enumerate(values.items())})
    (table,) = paper(comparison).tables
    assert [row.label for row in table.rows] == ["b", "a", "c"]  # a mean of survivors is last
    found = {(one.label, one.against): one for one in table.differences}
    welch = scipy.stats.ttest_ind(values["a"], values["b"], equal_var=False)
    assert (found["a", "b"].test, found["a", "b"].p) == ("Welch", pytest.approx(welch.pvalue, rel=1e-9))
    assert (found["a", "b"].low, found["a", "b"].high) == pytest.approx(tuple(welch.confidence_interval()), rel=1e-9)
    ranks = scipy.stats.mannwhitneyu([-1.0, *values["c"][1:]], values["b"], method="exact")
    assert (found["c", "b"].test, found["c", "b"].p) == ("ranks", pytest.approx(ranks.pvalue, rel=1e-9))
    text = paper(comparison).text("markdown")
    assert "4 completed, 1 diverged" in text or "1 diverged, 4 completed" in text
    assert "in which such a run is worse than any other" in text
    # Two seeds, and figures that do not vary, tell nothing by Student's test.
    few = write(tmp_path / "few", {("a", 0.1, "d"): by_seed([1, 2]), ("b", 0.1, "d"): by_seed([7, 8.1])})
    flat = write(tmp_path / "flat", {("a", 0.1, "d"): by_seed([0.1] * 5), ("b", 0.1, "d"): by_seed([0.3] * 5)})
    assert [paper(of).tables[0].differences[0].test for of in (few, flat)] == ["ranks", "ranks"]
    assert "Nothing was tuned." in paper(few).text("markdown")
    assert paper(flat).tables[0].differences[0].corrected == pytest.approx(2 / math.comb(10, 5))


def test_seeds_that_half_of_a_row_shares_are_compared_in_pairs(tmp_path):
    noise = np.random.default_rng(1).normal(size=11) * 5
    values = {"a": noise[:10], "b": noise[2:] + 1 + np.linspace(-0.1, 0.1, 9)}
    comparison = write(tmp_path, {(k, 0.1, "d"): by_seed(v, 2 * (k == "b")) for k, v in values.items()})
    (one,) = paper(comparison).tables[0].differences
    expected = scipy.stats.ttest_rel(values["a"][2:], values["b"][:8])
    assert (one.test, one.pairs, one.p) == ("paired", 8, pytest.approx(expected.pvalue, rel=1e-9))
    assert one.effect == pytest.approx(np.mean(values["a"][2:] - values["b"][:8]))


def test_what_diverged_before_its_first_figure_counts_as_diverged(tmp_path):
    settings = {("a", 0.1): [1, 2, 3], ("a", 0.9): [None] * 3, ("b", 0.1): [5, 6, 7.6], ("c", 0.1): [9, None, None]}
    found = paper(write(tmp_path, {(*key, "d"): by_seed(of) for key, of in settings.items()}))
    (table,) = found.tables
    assert [(row.label, row.runs) for row in table.rows][2] == ("c", "1 completed, 2 diverged")
    assert {one.label: one.choices for one in table.differences if one.against == "b"} == {"a": 2, "c": 1}
    assert [len(row.curve) for row in table.rows] == [1, 2, 1]
    # Means of survivors say nothing of the test, which counts all runs.
    (ranked,) = (one for one in table.differences if (one.label, one.against) == ("c", "b"))
    assert (ranked.effect, ranked.test, ranked.superiority) == (None, "ranks", pytest.approx(1 / 3))
    assert "c better in 33% of all pairs of a seed of each" in found.text("markdown")


def test_what_lacks_figures_is_named_and_what_cannot_be_told_apart_refused(tmp_path):
    three = by_seed([1, 2, 3.5])
    settings = {("a", None, "d"): three, ("a", 0.1, "d"): by_seed([0, 1, 1]), ("a", 0.2, "d"): by_seed([9, 9, 9])}
    settings |= {("a", None, "e"): {**three, 1: None}, ("a", 0.1, "e"): three, ("b", None, "e"): by_seed([2, 4, 5], 1)}
    comparison = write(tmp_path, settings | {("b", None, "d"): by_seed([4, 5, 6.1], 1)})
    (table,) = paper(comparison).tables
    assert table.left_out == ("a with adam.learning_rate=0.2",)
    assert [(row.label, row.setting) for row in table.rows] == [("b", ""), ("a", "learning_rate=0.1")]
    text = paper(comparison).text("markdown")
    assert "Left out, because they lack figures of mode\\_coverage/modes: a with" in text
    assert "0.1, 0.2, None (2 settings)" in text
    more = json.loads((tmp_path / "6-s1" / "run.json").read_text())["settings"] | {"new.thing": 1}
    write_run(tmp_path / "more", seed=1, settings=more, evaluation={"mode_coverage/modes": (1.0,)}, metrics={})
    with pytest.raises(ConfigError, match="two runs with seed 1: one has a setting that the other lacks"):
        paper(compare([tmp_path]), metrics=comparison.metrics)


def test_data_that_differ_are_tasks_whose_runs_are_strata(tmp_path):
    limits = {"ring": {MODES: [0.0, 8.0]}, "mixture": {MODES: [0.0, 25.0]}}
    ring, grid = np.array([[8, 7, 8, 6], [4, 5, 3, 4]]), np.array([[25, 20, 22, 21], [9, 10, 12, 7]])
    both = {"ring": ring, "mixture": grid}
    figures = {(name, 0.1, data): by_seed(of[n]) for n, name in enumerate("ab") for data, of in both.items()}
    found = paper(write(tmp_path, figures, limits=limits))
    (table,) = found.tables
    assert found.tuned == {"a": {}, "b": {}}  # although batches differ between tasks
    assert (table.tasks, table.normalized, table.rows[0].figures) == (("mixture", "ring"), True, (4, 4))
    shares = [scipy.stats.trim_mean(np.concatenate([grid[n] / 25, ring[n] / 8]), 0.25) for n in (0, 1)]
    assert [row.iqm for row in table.rows] == pytest.approx(shares, rel=1e-9)
    a, b = ((grid[n] / 25 + ring[n] / 8) / 2 for n in (0, 1))
    assert table.differences[0].p == pytest.approx(scipy.stats.ttest_rel(b, a).pvalue, rel=1e-9)


HOSTILE = r"""]*\input{/etc/passwd} $x^2_3$ %&#~"'`--''?` <b>|`a`|</b> 中é [2] \\"""


def test_hostile_names_are_text_in_every_language(tmp_path):
    names = (HOSTILE, f"[{HOSTILE}", "b\n# head\x1b[31m")
    figures = {(name, 0.1, "d"): by_seed([1, 3, 2]) for name in names}
    found = paper(write(tmp_path, figures))
    tex, markdown = found.text("latex"), found.text("markdown")
    for text, door in ((tex, latex_escaped), (markdown, markdown_escaped)):
        assert all(door(row.label) in text for row in found.tables[0].rows)
    assert not re.search(r"^# head", markdown, re.MULTILINE)
    assert r"\input" not in tex
    assert len({line.count("|") - line.count(r"\|") for line in markdown.splitlines() if line.startswith("|")}) == 1
    if shutil.which("pdflatex"):
        head = r"\documentclass{article}\usepackage{booktabs}\begin{document}"
        (tmp_path / "a.tex").write_text(f"{head}\n{tex}\n\\end{{document}}", encoding="utf-8")
        order = ["pdflatex", "-interaction=batchmode", "-halt-on-error", "a.tex"]
        subprocess.run(order, cwd=tmp_path, capture_output=True, check=True)


def test_the_command_prints_or_writes_and_names_what_is_wrong(tmp_path):
    runs, folder = tmp_path / "runs", tmp_path / "deep" / "paper"
    write(runs, {("a", 0.1, "d"): by_seed([1, 2, 3, 5]), ("b", 0.1, "d"): by_seed([11, 12.5, 13, 14])})
    printed = command("compare", runs, "--paper")
    said = command("compare", runs, "--paper-folder", folder)
    assert printed == (folder / "paper.md").read_text() + "\n" + (folder / "paper.tex").read_text()
    assert "paper.md" in said
    assert "b is significantly better than a" in printed or "a is significantly worse than b" in printed
    data = json.loads(command("compare", runs, "--paper", "--json"))["paper"]
    assert data["tables"][0]["rows"][0]["iqm"] == pytest.approx(12.75)
    assert "cannot be created" in command("compare", runs, "--paper-folder", folder / "paper.md", code=2)
    (folder / "paper.md").write_text("older")
    (folder / "paper.tex").unlink()
    (folder / "paper.tex" / "full").mkdir(parents=True)
    assert "cannot be written" in command("compare", runs, "--paper-folder", folder, code=2)
    assert (folder / "paper.md").read_text() == "older"
    write_run(tmp_path / "single")
    error = command("compare", tmp_path / "single", "--paper", "--metric", "wasserstein", code=2)
    assert "Give --metric critic/wasserstein:max or critic/wasserstein:min." in error


def test_a_run_without_the_figure_is_noted_and_two_figures_have_no_interval(tmp_path):
    write(tmp_path, {("a", 0.1, "d"): by_seed([1, 2]), ("b", 0.1, "d"): by_seed([7, 8.1, 9])})
    settings = json.loads((tmp_path / "0-s1" / "run.json").read_text())["settings"]
    write_run(tmp_path / "0-s2", seed=2, settings=settings, evaluation={}, metrics={})
    found = paper(compare([tmp_path]))
    assert [(row.label, row.low is None) for row in found.tables[0].rows] == [("b", False), ("a", True)]
    assert found.notes == (f"1 of 3 runs of a without {MODES}: {tmp_path.name}/0-s2.",)
