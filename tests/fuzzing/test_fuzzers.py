"""Runs each reader on some dozens or hundreds of fixed inputs; `tools/fuzz.py` generates new ones for hours."""

from contextlib import suppress

import fuzz
import fuzzing.metrics
import fuzzing.runs
import pytest
from fuzzing import TARGETS, examples

COUNTS = {
    "gin": 60,
    "metrics": 300,
    "runs": 80,
    "events": 200,
    "checkpoints": 120,
    "archives": 150,
    "names": 200,
    "settings": 60,
}


@pytest.mark.parametrize("name", TARGETS)
def test_readers_raise_only_ganlab_errors(name):
    assert examples(name, COUNTS[name]) == COUNTS[name]


def test_fuzzer_detects_a_reader_with_another_error(monkeypatch):
    read = fuzzing.metrics.read_metrics
    monkeypatch.setattr(fuzzing.metrics, "read_metrics", lambda path: read(path) if path.read_bytes() else {}["step"])
    with pytest.raises(KeyError):
        examples("metrics", 100)


def test_fuzzer_detects_a_reader_that_keeps_too_much(monkeypatch):
    monkeypatch.setattr(fuzzing.metrics, "mend", lambda path, truncate_after=None: None)
    with pytest.raises(AssertionError):
        examples("metrics", 100)


def test_inputs_include_valid_files(monkeypatch):
    # If all inputs were invalid, they would test only the first check.
    right = dict.fromkeys(("info", "check", "recipe"), 0)

    def check(files, folder):
        (folder / "run.json").write_bytes(files["run.json"])
        (folder / "config.gin").write_bytes(files["config.gin"])
        run = fuzzing.runs.Run(folder)
        for name, read in (("info", lambda: run.info), ("check", run.check), ("recipe", run.recipe)):
            with suppress(fuzzing.runs.GanlabError):
                read()
                right[name] += 1

    monkeypatch.setitem(TARGETS, "runs", type(TARGETS["runs"])(TARGETS["runs"].inputs, check))
    examples("runs", 100)
    assert all(10 <= count <= 95 for count in right.values()), right


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
def test_fuzz_tool_reports_counts_and_faults(monkeypatch, capsys):
    monkeypatch.setattr(fuzz, "_ROUND", 20)
    assert fuzz.main(["--minutes", "0.01", "--only", "events"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("events: ")
    assert int(said.split()[1]) >= 20
    assert said.endswith("no fault\n")
    monkeypatch.setattr(fuzzing.metrics, "mend", lambda path, truncate_after=None: 1 / 0)
    assert fuzz.main(["--minutes", "0.01", "--only", "metrics"]) == 1
    output = capsys.readouterr()
    assert "metrics: a fault with seed 0" in output.out
    assert "ZeroDivisionError" in output.err
