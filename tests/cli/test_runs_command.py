"""`ganlab runs`: its tables, its questions, and its refusals."""

import functools
import json
import re
import time

import pytest
import resting_runs
from click.testing import CliRunner
from command_lines import command, invoke, mistake_in

from ganlab.cli import cli
from ganlab.run import Run
from ganlab.support.formatting import in_bytes, in_time, listed


def make(path, **info):
    """Makes a run with a warning, of 2 MB."""
    run = resting_runs.make(path, **{"warnings": ["slopes are large"], **info})
    (path / "checkpoints" / "step-00000040" / "more.data").write_bytes(bytes(2_000_000))
    return run


@pytest.fixture
def ganlab(tmp_path, monkeypatch):
    """Runs a command line in an empty folder; returns its output, or its message if it must fail."""
    monkeypatch.chdir(tmp_path)
    return functools.partial(command, "runs")


def test_list_has_one_row_per_run(ganlab, tmp_path):
    make(tmp_path / "runs" / "ring" / "one", provenance={})
    make(tmp_path / "runs" / "digits" / "two", status="failed", step=7)
    head, two, one = ganlab("list").splitlines()
    assert head.split() == ["run", "status", "step", "age", "size", "health", "warnings", "dataset", "constraints"]
    assert one.split()[:3] == ["runs/ring/one", "completed", "40/40"]
    assert one.split()[4:7] == ["s", "2.0", "MB"]
    assert one.split()[7:] == ["ok", "1", "digits", "gradient_penalty,", "r1"]
    days = (time.time() - 1785585600) // 86400
    assert two.split()[:5] == ["runs/digits/two", "failed", "7/40", f"{days:.0f}", "d"]
    (only,) = ganlab("list", "--status", "failed").splitlines()[1:]
    assert only.split() == two.split()
    assert ganlab("list", "--status", "diverged") == "No run at or below runs has the status diverged.\n"


def test_a_long_path_is_never_cut(ganlab, tmp_path):
    name = "gradient_penalty.weight=10 spectral_norm.power_iterations=5 " + "x" * 80
    make(tmp_path / "runs" / name)
    head, row = ganlab("list").splitlines()
    assert row.startswith(f"runs/{name}  ")  # a table that can be copied: a row for each run, and no escape codes
    assert row.index("completed") == head.index("status")
    assert "\x1b" not in row


def test_a_list_as_json(ganlab, tmp_path):
    make(tmp_path / "runs" / "one")
    (row,) = json.loads(ganlab("list", "runs", "--json"))
    assert row.pop("bytes") > 2_000_000
    assert row == {
        "path": "runs/one",
        "status": "completed",
        "step": 40,
        "steps": 40,
        "started": "2026-08-01T12:00:00+00:00",
        "dataset": "digits",
        "constraints": "gradient_penalty, r1",
        "seed": 3,
        "problem": None,
        "health": [],
        "warnings": ["slopes are large"],
        "changes": [],
    }
    assert json.loads(ganlab("list", "--json", "--status", "killed")) == []


def test_a_list_has_the_health_of_each_run(ganlab, tmp_path):
    make(tmp_path / "runs" / "a", health=["gradient_penalty: steep.", "slopes: steep."], warnings=[])
    make(tmp_path / "runs" / "b", health=["a sentence alone"])
    make(tmp_path / "runs" / "c", health=[f"part{number}: wrong." for number in range(5)])
    make(tmp_path / "runs" / "d", health=None, warnings=None)
    make(tmp_path / "runs" / "e", health=["x\x1b[2Jy: odd", "7"], warnings={"no": "list"})
    text = ganlab("list", COLUMNS="200")
    cells = {line.split()[0][-1]: line.split("MB")[1].split("digits")[0].split() for line in text.splitlines()[1:]}
    assert "\x1b" not in text
    assert cells == {
        "a": ["gradient_penalty,", "slopes", "0"],
        "b": ["other", "1"],
        "c": ["part0,", "part1,", "part2", "and", "2", "more", "1"],
        "d": ["-", "0"],
        "e": ["other", "0"],
    }
    rows = json.loads(ganlab("list", "--json"))
    assert rows[0]["health"] == ["gradient_penalty: steep.", "slopes: steep."]
    assert rows[3]["health"] is None
    assert rows[4]["health"] == ["x\x1b[2Jy: odd", "7"]


def test_show_prints_the_state_of_a_run(ganlab, tmp_path):
    make(tmp_path / "one")
    assert ganlab("show", "one") == (
        "one\n"
        "completed at step 40 of 40, after 2 min of training\n"
        "begun 2026-08-01 12:00 UTC; seed 3; MirroredStrategy, 2 replicas\n"
        "2.0 MB on disk; checkpoints of step 40\n"
        "\n"
        "Settings:\n"
        "  experiment.steps = 40\n"
        "\n"
        "Last metrics:\n"
        "  critic/loss         -1.5\n"
        "  critic/wasserstein  inf\n"
        "\n"
        "Last evaluation:\n"
        "  kid/distance  0.25\n"
        "\n"
        "Health:\n"
        "  nothing is wrong\n"
        "\n"
        "Warnings:\n"
        "  slopes are large\n"
        "\n"
        "From:\n"
        "  commit   abc123, with changes\n"
        "  packages ganlab 0.1.0\n"
        "  plugins  mine 2.0 (soft-slope)\n"
        "  python   3.11.7 on h, Linux\n"
        "  devices  CPU:0\n"
        "  command  ganlab run\n"
    )


def test_show_names_the_runs_that_a_run_comes_from(ganlab, tmp_path):
    make(tmp_path / "twin", forked_from={"run": "/runs/a\x1b", "step": 11, "settings": {"experiment.seed": 3}})
    assert "From:\n  fork     of /runs/a\\x1b at step 11, with experiment.seed = 3\n  commit" in ganlab("show", "twin")
    names = [f"critic/weights/{i}" for i in range(6)]
    make(
        tmp_path / "later", started_from={"run": "/b", "step": 16, "taken": names, "other_shape": ["c"], "left": names}
    )
    assert (
        "  weights  of /b, step 16: 6 taken; did not fit: it has in another shape c; only that run has "
        "critic/weights/0, critic/weights/1, critic/weights/2, critic/weights/3, and 2 more\n"
    ) in ganlab("show", "later")
    make(tmp_path / "odd", forked_from={"settings": 3}, started_from={"taken": 5})
    assert "odd/run.json: forked_from.run is missing. Restore" in ganlab("show", "odd", code=2)
    (forked, started) = json.loads(ganlab("show", "odd", "--json"))["problems"]
    assert "forked_from.run is missing" in forked
    assert "started_from.run is missing" in started


def test_show_as_json_has_run_json_and_the_other_known_facts(ganlab, tmp_path):
    make(tmp_path / "one", status="running")
    shown = json.loads(ganlab("show", "one", "--json"))
    assert shown.pop("bytes") > 2_000_000
    assert shown == {
        **resting_runs.INFO,
        "warnings": ["slopes are large"],
        "metrics": {"critic/loss": -1.5, "critic/wasserstein": "Infinity"},
        "path": "one",
        "status": "killed",
        "checkpoints": [40],
        "changes": [],
    }


def test_rm_without_a_terminal_requires_yes(ganlab, tmp_path):
    make(tmp_path / "one")
    make(tmp_path / "two")
    assert "pass --yes to remove without confirmation" in ganlab("rm", "one", code=2)
    assert (tmp_path / "one" / "run.json").is_file()
    assert ganlab("rm", "one", "two", "--yes") == "Removed 2 runs: 4.0 MB.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("answer", "gone"), [("y", True), ("n", False), ("", False)])
def test_rm_on_a_terminal_asks(ganlab, tmp_path, monkeypatch, answer, gone):
    make(tmp_path / "one")
    monkeypatch.setattr("ganlab_archive.rm_command._on_a_terminal", lambda: True)
    result = CliRunner().invoke(cli, ["runs", "rm", "one"], input=f"{answer}\n")
    assert result.exit_code == 0
    assert "Remove this run, 2.0 MB? [y/N]" in result.stdout
    assert result.stdout.endswith("Removed 1 run: 2.0 MB.\n" if gone else "Nothing was removed.\n")
    assert (tmp_path / "one").exists() != gone


def test_rm_may_keep_metrics(ganlab, tmp_path):
    make(tmp_path / "one")
    output = ganlab("rm", "one", "--yes", "--keep-metrics")
    assert output == "Removed the checkpoints and sample pictures of 1 run: 2.0 MB.\n"
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == [
        *("config.gin", "metrics.jsonl", "operative.gin", "run.json")
    ]
    assert "no checkpoint" in ganlab("show", "one")


def test_archive_round_trip(ganlab, tmp_path):
    make(tmp_path / "runs" / "ring" / "one")
    make(tmp_path / "runs" / "digits" / "two")
    (tmp_path / "runs" / "ring" / "one" / "link").symlink_to(tmp_path)
    arguments = ["runs", "archive", "runs/ring/one", "runs/digits/two", "-o", "a.tar.gz", "--no-checkpoints"]
    result = invoke(*arguments)
    assert re.fullmatch(r"Wrote a\.tar\.gz: 2 runs, [\d.]+ k?B\.\n", result.stdout)
    assert re.fullmatch(r"Warning: .*/one/link is a link and was left out\.\n", result.stderr)
    assert ganlab("unarchive", "a.tar.gz", "-o", "new") == "new/digits/two\nnew/ring/one\n"
    assert Run(tmp_path / "new" / "ring" / "one").info == Run(tmp_path / "runs" / "ring" / "one").info
    assert "runs/digits/two already exists" in ganlab("unarchive", "a.tar.gz", code=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list", "nowhere"], "There is no folder nowhere."),
        (["list", "--status", "done"], "'done' is not one of 'running'"),
        (["show", "noe"], "Run noe not found: no such directory. Did you mean 'one'?"),
        (["rm", "--yes", "noe"], "Run noe not found"),
        (["rm", "--yes", "."], "is not a run but contains 1 of them"),
        (["archive", "one", "-o", "a.zip"], "a.zip must end in .tar.gz or .tgz"),
        (["unarchive", "a.tgz"], "a.tgz cannot be read: No such file or directory"),
        (["remove"], "No such command 'remove'."),
        (["lst"], "No such command 'lst'. Did you mean 'list'?"),
    ],
)
@pytest.mark.usefixtures("ganlab")
def test_mistakes_are_one_message_and_change_nothing(tmp_path, arguments, message):
    make(tmp_path / "one")
    assert message in mistake_in(tmp_path, "runs", *arguments)


def test_sizes_and_times_are_formatted():
    sizes = {0: "0 B", 999: "999 B", 1000: "1.0 kB", 1949: "1.9 kB", 9_940: "9.9 kB", 9_960: "10 kB"}
    sizes |= {999_400: "999 kB", 999_600: "1.0 MB", 3_400_000_000: "3.4 GB", 5 * 10**15: "5000 TB"}
    assert {size: in_bytes(size) for size in sizes} == sizes
    times = {-3: "0 s", 0.4: "0 s", 59.9: "59 s", 60: "1 min", 3599: "59 min", 3600: "1 h", 86399: "23 h"}
    times[86400 * 12.5] = "12 d"
    assert {seconds: in_time(seconds, units=1) for seconds in times} == times
    spans = {None: "-", -1: "0.0 s", 8.44: "8.4 s", 59.6: "1 min 0 s", 200: "3 min 20 s", 7500: "2 h 5 min"}
    spans[12 * 86400 + 3 * 3600 + 59] = "12 d 3 h"
    assert {seconds: in_time(seconds) for seconds in spans} == spans


def test_long_lists_are_cut_short():
    lists = {"": "", "a": "a", "ab": "a, b", "abc": "a, b and 1 more", "abcde": "a, b and 3 more"}
    assert {names: listed(list(names), 2) for names in lists} == lists
