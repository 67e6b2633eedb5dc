"""What is said of a few runs: the range of two, and intervals that end where figures can, in every output."""

import csv
import json
import math

import pytest
from command_lines import command
from synthetic import SETTINGS, write_grid, write_run

import ganlab

MODES, SHARE = "evaluation/mode_coverage/modes", "evaluation/mode_coverage/high_quality"
LIMITS = {MODES: [0.0, 8.0], SHARE: [0.0, 1.0], "evaluation/exact_w1/distance": [0.0, None]}


def write(folder, modes, shares=None, limits=LIMITS, weight=10.0):
    figures = {"mode_coverage/modes": modes, "mode_coverage/high_quality": shares}

    def evaluation(_, seed):
        return {name: (values[seed],) for name, values in figures.items() if values}

    return write_grid(folder, [weight], len(modes), metrics={}, evaluation=evaluation, limits=limits)


def outputs(folder):
    """The comparison in the terminal, as CSV, as HTML and as JSON."""
    paths = folder / "a.csv", folder / "a.html"
    plain = command("compare", folder, "--all", "--csv", paths[0], "--html", paths[1])
    (row,) = csv.DictReader(paths[0].read_text().splitlines())
    (one,) = json.loads(command("compare", folder, "--json"))["configurations"]
    return plain, row, paths[1].read_text(), one


@pytest.mark.parametrize(
    ("modes", "ends"),
    [((4.0, 8.0), "[4, 8]"), ((8.0, 8.0), "[8, 8]"), ((7.0,) * 3, "[7, 7]"), ((0.5,) * 25, "[0.5, 0.5]")],
)
def test_two_seeds_and_equal_ones_show_their_range(tmp_path, modes, ends):
    terminal, row, page, one = outputs(write(tmp_path, modes))
    assert f"range {ends}" in terminal
    assert "or the range of two runs or of equal ones" in terminal
    assert (row[f"{MODES} last low"], row[f"{MODES} last high"]) == (str(min(modes)), str(max(modes)))
    assert row[f"{MODES} last method"] == row[f"{MODES} best method"] == "range"
    assert one["last"][MODES]["method"] == "range"
    assert (one["last"][MODES]["iqm_low"], one["last"][MODES]["iqm_high"]) == (None, None)
    assert "<small>range [" in page


def test_counts_and_shares_stay_inside_what_is_possible(tmp_path):
    terminal, row, page, one = outputs(write(tmp_path, (0.0, 8.0, 8.0), (0.0, 0.0, 0.1)))
    assert (one["last"][MODES]["low"], one["last"][MODES]["high"]) == (0.0, 8.0)
    assert one["last"][SHARE]["low"] == 0.0
    assert 0.1 < one["last"][SHARE]["high"] < 1.0
    assert float(row[f"{MODES} last high"]) == 8.0
    assert "[0, 8]" in terminal
    assert "range [" not in terminal
    assert "<small>range [" not in page


@pytest.mark.parametrize("limits", [None, 3, {MODES: 3}, {MODES: ["a", {}]}, {MODES: [8.0, 0.0]}, {MODES: [0.0, 1.0]}])
def test_limits_that_runs_do_not_keep_are_none(tmp_path, limits):
    write(tmp_path, (4.0, 6.0, 8.0), limits=limits)
    found = ganlab.compare(tmp_path).estimates["all runs", MODES]
    assert found.low <= 4.0
    assert found.high >= 8.0
    assert math.isfinite(found.low + found.high)


@pytest.mark.parametrize(
    ("other", "method"), [((5.0, 7.0), "range"), ((5.0, 6.0, 7.0), "range"), ((5.0, 7.0, 6.0), "student")]
)
def test_pairs_that_say_nothing_of_chance_have_a_range(tmp_path, other, method):
    write(tmp_path, (4.0, 5.0, 6.0)[: len(other)], weight=1.0)
    write(tmp_path, other, weight=2.0)
    said = " ".join(command("compare", tmp_path, "--paired").split())
    assert (", range [" in said) == (method == "range")
    assert ("so chance is unknown" in said) == (method == "range")
    assert "beyond chance)" not in said or method == "student"


def test_mode_coverage_knows_the_modes_of_its_dataset():
    ring = ganlab.component("datasets", "gaussian_ring")()
    limits = ganlab.component("evaluators", "mode_coverage")().limits(ring)
    assert limits == {"modes": (0.0, 8.0), "high_quality": (0.0, 1.0), "reverse_kl": (0.0, math.log(8))}


def test_a_run_without_the_figure_takes_no_limit_away(tmp_path):
    write(tmp_path, (4.0, 7.5, 8.0))
    settings = {**SETTINGS, "constraints.gradient_penalty.weight": 10.0, "experiment.steps": 7}
    write_run(tmp_path / "other", seed=0, settings=settings, metrics={}, evaluation={})
    found = ganlab.compare(tmp_path, by="gradient_penalty.weight", metrics=MODES)
    (one,) = found.estimates.values()
    assert (one.n, one.high) == (3, 8.0)


def test_a_run_whose_rows_are_gone_is_named(tmp_path):
    write(tmp_path, (4.0, 7.5, 8.0))
    (tmp_path / "w10" / "s1" / "metrics.jsonl").unlink()
    (problem,) = ganlab.compare(tmp_path).problems
    assert problem.endswith("w10/s1 has no metrics.jsonl: its best values are its last ones.")
