"""A run that was changed midway is marked wherever its configuration is shown, with the changes and their steps."""

import csv
import json

import pytest
from command_lines import command
from synthetic import WEIGHT, write_grid, write_run

from ganlab.runs.changes import changes_of, to_write

LINE = f"{WEIGHT}: 0.1, and now 10.0"
RESUMED = [{"step": 20, "changes": [LINE, "data of datasets.digits, size: 3, and now 4"]}]
# The best distance is at step 10, before the change.
FIGURES = {"exact_w1/distance": (0.1, 0.5, 0.4, 0.3)}


@pytest.fixture
def runs(tmp_path):
    """Two weights with two seeds each; one run got its weight midway."""
    plain = [{"step": 20, "changes": []}]
    return write_grid(
        tmp_path, (1.0, 10.0), evaluation=FIGURES, resumed=lambda *run: RESUMED if run == (10.0, 1) else plain
    )


def test_runs_list_marks_a_changed_run(runs):
    text = command("runs", "list", runs, COLUMNS="400")  # however long the path of the folder is
    marked = [line.split()[0] for line in text.splitlines()[1:] if " ! " in line]
    assert [name.rpartition("/w")[2] for name in marked] == ["10/s1"]
    assert "! Changed midway" in text
    rows = json.loads(command("runs", "list", runs, "--json"))
    assert [row["changes"] for row in rows if row["changes"]] == [[{"step": 20, "what": RESUMED[0]["changes"]}]]
    assert "!" not in command("runs", "list", runs / "w1")


def test_runs_show_lists_changes_with_their_steps(runs):
    text = command("runs", "show", runs / "w10" / "s1")
    assert f"Changed midway:\n  at step 20:\n    {LINE}\n    data of datasets.digits, size: 3, and now 4\n" in text
    assert json.loads(command("runs", "show", runs / "w10" / "s1", "--json"))["changes"][0]["step"] == 20
    assert "Changed midway" not in command("runs", "show", runs / "w10" / "s0")


@pytest.mark.parametrize("width", [60, 100, 200])
def test_compare_marks_the_configuration_and_the_best_value(runs, width):
    text = command("compare", runs, "--all", COLUMNS=str(width))
    assert max(map(len, text.splitlines())) <= width
    output = " ".join(text.split())
    assert f"1 of 2 runs of gradient_penalty.weight=10 changed midway: w10/s1 at step 20 ({LINE}; data of" in output
    assert (
        "1 of 2 runs of gradient_penalty.weight=10 with a best evaluation/exact_w1/distance from before the change: "
        "w10/s1 at step 10."
    ) in output
    assert "! has runs that were changed midway" in output
    rows = [line for line in text.splitlines() if line.strip().startswith("10 !")]
    assert rows
    assert any("0.1 !" in row for row in rows)
    assert not [line for line in text.splitlines() if line.strip().startswith("1 !")]


def test_compare_without_changes_mentions_none(runs):
    assert "changed" not in command("compare", runs / "w1")
    assert "!" not in command("compare", runs / "w1")


def test_every_comparison_file_lists_the_change(runs, tmp_path):
    command("compare", runs, "--csv", tmp_path / "a.csv", "--html", tmp_path / "a.html")
    table = csv.DictReader((tmp_path / "a.csv").read_text().splitlines())
    assert [row["changed"] for row in table] == ["0", "1"]
    rows = json.loads(command("compare", runs, "--json"))["configurations"]
    assert [row["changed"] for row in rows] == [[], ["w10/s1"]]
    assert rows[1]["best_before_change"] == {"evaluation/exact_w1/distance": ["w10/s1"]}
    assert rows[1]["runs"][1]["changes"][0]["what"][0] == LINE
    page = (tmp_path / "a.html").read_text()
    assert f"! w10/s1, at step 20: {LINE}" in page
    assert "! from before a change" in page
    assert "completed, changed at step 20" in page
    assert "changed midway: w10/s1" in page
    assert "None found" not in page


def test_best_value_after_the_change_is_not_marked(tmp_path):
    later = {"exact_w1/distance": (0.5, 0.4, 0.1, 0.3)}
    write_run(tmp_path / "a" / "s0", evaluation=later, resumed=RESUMED)
    text = command("compare", tmp_path, "--all")
    assert "changed midway" in text
    assert "with a best" not in text


def test_unchanged_run_is_preferred_to_a_changed_one_with_its_settings(tmp_path):
    write_run(tmp_path / "a" / "pure", started="2026-08-01T12:00:00+00:00")
    write_run(tmp_path / "a" / "changed", started="2026-08-02T12:00:00+00:00", resumed=RESUMED)
    rows = json.loads(command("compare", tmp_path, "--json"))["configurations"]
    assert [run["name"] for run in rows[0]["runs"]] == ["a/pure"]


@pytest.mark.parametrize(
    ("resumed", "steps"),
    [
        ([(20, "a"), (40, ""), (60, "b")], [20, 60]),
        ([(20, "a"), (10, "")], [10]),  # a damaged checkpoint, and the one before it
        ([(20, "a"), (0, "")], []),  # the change applies to the whole run
        ([(0, "a"), (30, "b")], [30]),
        ([(60, "a"), (20, "b"), (40, "c")], [20, 20, 40]),
    ],
)
def test_only_changes_in_effect_are_listed(resumed, steps):
    info = {"resumed": [{"step": step, "changes": [what] if what else []} for step, what in resumed]}
    assert [change.step for change in changes_of(info)] == steps


def test_event_files_lack_the_newest_change_and_lines_that_were_cut():
    info = {"resumed": [{"step": 20, "changes": ["a"]}, {"step": 50, "changes": ["b"]}]}
    assert [change.what for change in to_write(info, 50)] == [("b",)]
    info["resumed"].append({"step": 30, "changes": []})
    assert [(change.step, change.what) for change in to_write(info, 30)] == [(30, ("b",))]
    assert to_write({"resumed": [{"step": 20, "changes": ["a"]}, {"step": 50, "changes": []}]}, 50) == []
