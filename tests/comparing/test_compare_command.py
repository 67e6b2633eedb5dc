"""`ganlab compare`: its tables, what it writes, its messages, and how long it takes."""

import csv
import json
import math
import re
import subprocess
import sys

import numpy as np
import pytest
from command_lines import command
from cpu import against_imports
from ganlab_compare import compare, writing
from synthetic import SETTINGS, WEIGHT, write_grid, write_run

import ganlab

MODES, W1 = "evaluation/mode_coverage/modes", "evaluation/exact_w1/distance"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two weights with two seeds each, and a third whose second run diverged."""
    figures = {0.1: (6.0, 7.0), 1.0: (7.0, 8.0), 10.0: (5.0, math.nan)}

    def evaluation(weight, seed):
        modes = figures[weight][seed]
        return {"mode_coverage/modes": (8.0, modes), "exact_w1/distance": (0.5, modes / 100)}

    return write_grid(
        tmp_path_factory.mktemp("sweep"),
        figures,
        evaluation=evaluation,
        status=lambda *run: "diverged" if run == (10.0, 1) else "completed",
        wall_seconds=lambda _, seed: 4.0 + 12.0 * seed,
    )


def test_the_table(runs):
    table, notes, better, _ = command("compare", runs, "--all", "--statistics", COLUMNS="160").split("\n\n")
    lines = [line.rstrip() for line in table.splitlines()]
    assert lines[0].split() == ["mode_coverage", "mode_coverage", "exact_w1", "exact_w1", "critic"]
    heads = re.findall(r"\S+(?: \S+)?", lines[2])
    assert heads[:4] == ["weight", "runs", "health", "warnings"]
    assert heads[4:] == ["last", "best (max)", "last", "best (min)", "last", "time", "steps/s"]
    # Of two runs their range: Student's interval would be 6.5 -+ 6.353. 40 steps in 4 and in 16 s: 10 and 2.5 a second.
    assert lines[6].split() == ["0.1", "2", "-", "0", "6.5", "8", "0.065", "0.065", "1", "10.0", "s", "6.25"]
    assert "range [6, 7]" in lines[7]
    assert [line.split()[0] for line in lines if re.match(r" *[\d.]+ +2 ", line)] == ["1", "0.1", "10"]
    assert "1 diverged" in table
    assert better.splitlines()[0].startswith("Probability that a run is better than a run of the reference")
    # (6, 7) over (7, 8): one tie of four, and the distances, a hundredth of them, the other way round. Weight 10 has
    # the smallest distance, 0.05, but of one run, as the other diverged: it is not a reference.
    cells = [re.findall(r"reference|0\.\d\d \[", line) for line in better.splitlines()]
    rows = [row for row in cells[1:] if row]
    assert rows == [["reference", "0.12 ["], ["0.12 [", "reference"], ["0.00 [", "0.50 ["]]
    assert "- 1 of 2 runs of gradient_penalty.weight=10 diverged: w10/s1 at step 40." in " ".join(notes.split())


def test_ten_lines_have_the_best_rows_first(tmp_path):
    for weight in range(20):
        for seed in range(3):
            write_run(
                tmp_path / f"{weight}-{seed}",
                seed=seed,
                settings={**SETTINGS, WEIGHT: float(weight), "architectures.mlp.width": 2**weight},
                evaluation={"exact_w1/distance": (abs(weight - 7) + seed / 100,)},
            )
    for width in (40, 60, 80, 200):
        lines = command("compare", tmp_path, COLUMNS=str(width)).splitlines()
        assert len(lines) == 10
        assert max(map(len, lines)) <= width
        assert "more rows, every metric; --statistics" in " ".join(" ".join(lines).split())
    # The mean of 0.00, 0.01 and 0.02 is 0.01, and Student's t of two degrees is 4.303 for a deviation of 0.01.
    assert lines[0].split() == ["weight", "width", "distance", "interval", "runs"]
    assert [float(row.split()[2]) for row in lines[1:9]] == [0.01, 1.01, 1.01, 2.01, 2.01, 3.01, 3.01, 4.01]
    assert lines[1].split() == ["7", "128", "0.01", "[-0.01484,", "0.03484]", "3"]


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_screen_and_no_figure_is_cut(runs, width):
    text = command("compare", runs, "--all", "--statistics", COLUMNS=str(width))
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for figure in ("range [6, 7]", "10.0 s", "6.25", "exact_w1"):
        assert figure in text


def test_a_pipe_gets_no_colours(runs):
    done = subprocess.run([sys.executable, "-m", "ganlab", "compare", runs], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_json_is_the_whole_comparison(runs):
    data, found = json.loads(command("compare", runs, "--json")), compare([runs])
    assert list(data) == ["differing", "common", "metrics", "configurations", "leading", "verdicts", "problems"]
    assert data["differing"] == [WEIGHT]
    assert data["metrics"][0] == {"tag": MODES, "direction": "max"}
    assert [row["label"] for row in data["configurations"]] == [one.label for one in found.configurations]
    for row in data["configurations"]:
        for title, known in (("last", found.estimates), ("best", found.best), ("improvement", found.improvement)):
            expected = {tag: vars(value) for (label, tag), value in known.items() if label == row["label"]}
            assert row[title] == expected
    bad = data["configurations"][2]["runs"][1]
    assert (bad["status"], bad["last"][MODES], bad["best"][MODES]) == ("diverged", "NaN", 8.0)
    assert data["problems"] == list(found.problems)


def test_every_output_has_the_health_complaints(tmp_path):
    steep = "gradient_penalty: The critic's mean slope is 138 where its target is 1, steep."
    grown = "critic/loss: The critic's loss is 1e+12."
    health = {0.01: [steep], 1.0: []}
    warnings = {(1.0, 1): [grown], (1.0, 0): []}
    write_grid(
        tmp_path, health, health=lambda weight, _: health[weight], warnings=lambda *run: warnings.get(run, [steep])
    )
    text = command(
        "compare", tmp_path, "--all", "--csv", tmp_path / "a.csv", "--html", tmp_path / "a.html", COLUMNS="140"
    )
    rows = [line.split() for line in text.splitlines()]
    assert rows[2][:4] == ["weight", "runs", "health", "warnings"]
    assert [row[:5] for row in rows if row[:1] in (["0.01"], ["1"])] == [
        ["0.01", "2", "2", "unhealthy", "2"],
        ["1", "2", "ok", "1", "1"],
    ]
    table = " ".join(text.split())
    assert (
        "- 2 of 2 runs of gradient_penalty.weight=0.01 unhealthy, by gradient_penalty: w0.01/s0, w0.01/s1. Of " in table
    )
    assert "w0.01/s0: The critic's mean slope is 138 where its target is 1, steep." in table
    assert "- 1 of 2 runs of gradient_penalty.weight=1 warned, by critic/loss: w1/s1. The critic's loss is" in table
    data = json.loads(command("compare", tmp_path, "--json"))
    assert [[run["health"] for run in row["runs"]] for row in data["configurations"]] == [[[steep]] * 2, [[], []]]
    assert data["configurations"][1]["runs"][1]["warnings"] == [grown]
    table = csv.DictReader((tmp_path / "a.csv").read_text().splitlines())
    assert [(row["unhealthy"], row["warnings"]) for row in table] == [("2", "2"), ("0", "1")]
    page = (tmp_path / "a.html").read_text()
    assert "None found" not in page
    assert "The critic&#39;s mean slope is 138" in page
    assert page.count(">gradient_penalty</span>") == 2


def test_csv_is_plain_numbers(runs, tmp_path):
    assert f"Wrote {tmp_path / 'table.csv'}" in command("compare", runs, "--csv", tmp_path / "table.csv")
    rows = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    found = compare([runs])
    assert [float(row[WEIGHT]) for row in rows] == [0.1, 1.0, 10.0]
    assert [(row["runs"], row["unfinished"], row["diverged"]) for row in rows] == [("2", "0", "0")] * 2 + [
        ("2", "0", "1")
    ]
    for row in rows:
        estimate = found.estimates[row["configuration"], MODES]
        assert float(row[f"{MODES} last mean"]) == estimate.mean
        assert row[f"{MODES} last low"] == ("" if estimate.low is None else repr(estimate.low))
        assert float(row[f"{W1} best mean"]) == found.best[row["configuration"], W1].mean
    assert [row[f"{MODES} improvement probability"] for row in rows] == ["0.125", "", "0.0"]
    assert rows[2][f"{MODES} last n"] == "1"
    assert rows[2][f"{MODES} last low"] == ""
    assert [{name: "" if x is None else str(x) for name, x in row.items()} for row in found.rows()] == rows


@pytest.mark.parametrize("text", ["=1+1", "+1", "-a", "@SUM(1)", "\ta", "\ra"])
def test_no_field_of_a_csv_file_is_a_formula(text):
    assert writing._field(text) == f"'{text}"
    assert [writing._field(value) for value in (-1.5, None, "a=1", "")] == [-1.5, "", "a=1", ""]


def test_a_frame_where_pandas_is_installed(runs, monkeypatch):
    found = compare([runs])
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert found._repr_html_() is None
    with pytest.raises(ganlab.MissingDependencyError, match=r"pandas is not installed.*pip install pandas"):
        found.frame()
    monkeypatch.undo()
    frame = pytest.importorskip("pandas").DataFrame(found.rows())
    assert found.frame().reset_index().equals(frame)
    assert "gradient_penalty" in found._repr_html_()
    assert len(found._repr_html_().split("<th>")) > 3


def test_compare_with_by_metric_and_against(runs):
    text = command(
        "compare", runs, "--by", "weight", "--metric", "modes:min", "--metric", "wasserstein", "--against", "weight=0.1"
    )
    # As --min has it, 5 to 6.5 are better than 7.5.
    assert [row.split()[:2] for row in text.splitlines()[1:4]] == [["0.1", "6.5"], ["1", "7.5"], ["10", "5"]]
    assert re.search(r"\n +0\.1 +reference", text)
    assert "exact_w1" not in text


def test_single_runs_are_reported_as_single(tmp_path):
    write_run(tmp_path / "a")
    assert "One run each: how much of a difference is chance is unknown." in command("compare", tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument"),
        (["nowhere"], "Run nowhere not found: no such directory."),
        ([""], "the path is empty: give one"),
        (["{runs}", "--against", "weight=7"], "No configuration matches 'weight=7'."),
        (["{runs}", "--csv", "/nowhere/a.csv"], "/nowhere/a.csv cannot be written: No such file or directory."),
        (["{runs}", "--csv", "x", "--html", "x"], "--csv and --html are both x. Name two files."),
        (["{runs}", "--html", "/nowhere/a.html"], "/nowhere/a.html cannot be written: No such file or directory."),
    ],
)
def test_mistakes_are_one_message(runs, arguments, message):
    error = command("compare", *(argument.format(runs=runs) for argument in arguments), code=2)
    assert message in error
    assert "Traceback" not in error


@pytest.mark.slow
def test_two_hundred_runs_take_two_seconds_at_most_and_no_tensorflow(tmp_path):
    rng = np.random.default_rng(0)
    tags = ["critic/wasserstein", "critic/loss", "critic/penalty", "generator/loss"]
    for number in range(20):
        for seed in range(10):
            write_run(
                tmp_path / f"c{number}" / f"s{seed}",
                seed=seed,
                settings={**SETTINGS, WEIGHT: float(number)},
                metrics=dict(zip(tags, rng.normal(size=(len(tags), 100)), strict=True)),
                evaluation={"mode_coverage/modes": rng.uniform(size=10), "exact_w1/distance": rng.uniform(size=10)},
            )
    code = f"""
import sys
from ganlab.cli import cli
cli.main(["compare", {str(tmp_path)!r}, "--all", "--statistics"], standalone_mode=False)
heavy = ("tensorflow", "keras", "scipy.stats", "sklearn", "matplotlib", "tensorboard")
print([name for name in heavy if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert sum(line.split()[1:2] == ["10"] for line in done.stdout.splitlines()) == 20
    # Two seconds of a core that imports numpy, click and pluggy in a quarter of a second.
    assert against_imports([sys.executable, "-c", code], 8) < 8
