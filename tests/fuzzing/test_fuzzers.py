"""Runs each reader on some dozens or hundreds of fixed inputs; `tools/fuzz.py` generates new ones for hours."""

import copy
import json
import re
from contextlib import suppress
from pathlib import Path

import fuzz
import fuzzing.benchmarks
import fuzzing.checkpoints
import fuzzing.metrics
import fuzzing.runs
import fuzzing.settings
import fuzzing.sweeps
import fuzzing.targets
import numpy as np
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
    "sweeps": 60,
    "benchmarks": 20,
    "references": 30,
    "facts": 100,
    "moving": 60,
    "tab": 60,
}

# The modules that read JSON, each with the target that forges it; None where ganlab's own processes wrote it.
READERS = {
    "plugins/ganlab_benchmark/against.py": "references",
    "plugins/ganlab_benchmark/child.py": None,
    "plugins/ganlab_benchmark/measuring.py": None,
    "plugins/ganlab_benchmark/store.py": "benchmarks",
    "plugins/ganlab_certify/described_models.py": "facts",
    "plugins/ganlab_certify/keras_files.py": "facts",
    "plugins/ganlab_devices/children.py": None,
    "plugins/ganlab_passport/passport.py": None,
    "plugins/ganlab_passport/tensors.py": "facts",
    "plugins/ganlab_remote/manifests.py": "facts",
    "plugins/ganlab_remote/mirroring.py": "facts",
    "plugins/ganlab_verify/check_command.py": None,
    "ganlab/runs/given.py": None,
    "ganlab/runs/info.py": "settings",
    "ganlab/runs/lock.py": "runs",
    "ganlab/runs/origins.py": None,
    "plugins/ganlab_archive/placing.py": "moving",
    "ganlab/support/strict_json.py": "runs",
    "plugins/ganlab_sweep/store.py": "sweeps",
    "ganlab/telemetry/jsonl_lines.py": "metrics",
    "plugins/ganlab_verify/testing/check_process.py": None,
    "ganlab/training/checkpoints.py": "checkpoints",
    "plugins/ganlab_verify/process.py": None,
    "plugins/ganlab_verify/tpu/checking.py": None,
    "plugins/ganlab_verify/tpu/compiling.py": None,
    "plugins/ganlab_builtin/datasets/tfrecords.py": "facts",
    "plugins/ganlab_builtin/evaluators/statistics_file.py": "facts",
    "plugins/ganlab_builtin/features/storing.py": "facts",
    "plugins/ganlab_builtin/launchers/forking.py": None,
    "plugins/ganlab_builtin/launchers/warm.py": None,
    "plugins/ganlab_builtin/strategies/workers.py": "facts",
}


@pytest.mark.parametrize("share", [10, pytest.param(1, marks=pytest.mark.slow)], ids=["a tenth", "all"])
@pytest.mark.parametrize("name", TARGETS)
def test_readers_raise_only_ganlab_errors(name, share):
    assert examples(name, COUNTS[name] // share) == COUNTS[name] // share


def test_every_reader_of_json_has_a_target():
    reads = re.compile(r"(json\.loads?|parse_json|read_json)\(")
    root = Path(__file__).parents[2]
    files = [path for top in ("ganlab", "plugins") for path in (root / top).rglob("*.py")]
    assert {str(path.relative_to(root)) for path in files if reads.search(path.read_text())} == set(READERS)
    assert {target for target in READERS.values() if target} <= set(TARGETS)


# What the targets once found, each with the input that showed it.
FOUND = {
    "an entry of an index that is no message": ("checkpoints", lambda: _checkpoint(b"\xff\xff\xff")),
    "a note on a trial that runs": ("sweeps", lambda: _sweep(trials={"a/s1": {"status": "running", "error": ""}})),
    "a sweep without threads": ("sweeps", lambda: _sweep(threads=None)),
    "a sweep whose time limit is a text": ("sweeps", lambda: _sweep(asked={**fuzzing.sweeps.ASKED, "timeout": "x"})),
    "a benchmark that chose a setting that is not there": ("benchmarks", lambda: _benchmark(chosen={"w1": 10**6})),
    "a benchmark with half a cost": ("benchmarks", lambda: _benchmark(cost={"ratio": 1.5})),
    "results whose steps are a number": ("references", lambda: _reference(steps=1)),
    "a metric whose name is not in ASCII": (
        "metrics",
        lambda: b'{"step": 1, "metrics": {"\xc2\x80loss": {"reduced": 0.5, "replicas": [0.5]}}}\n',
    ),
    "facts of many levels": ("facts", lambda: b'{"a":' * 1995),
    "facts with a number that no float holds": ("facts", lambda: b'{"pattern": [1' + b"0" * 400 + b', 1], "count": 3}'),
    "a worker whose type is a table": (
        "facts",
        lambda: b'{"cluster": {"worker": ["a:1"]}, "task": {"type": {}, "index": 0}}',
    ),
    "a run to be moved into a folder that is not there": ("moving", lambda: json.dumps([b"two/b".hex()]).encode()),
    "an address that is not text": (
        "tab",
        lambda: (fuzzing.settings.made_of("step", b"3"), b"", [("/data/run", "GET", b"run=\x80", {}, b"")]),
    ),
}


@pytest.mark.parametrize(("target", "make"), FOUND.values(), ids=FOUND)
def test_what_was_found_stays_repaired(tmp_path, target, make):
    TARGETS[target].check(make(), tmp_path)


def _checkpoint(value):
    """A checkpoint in whose index another value follows a name."""
    files, name = fuzzing.checkpoints.bundle(), b"_CHECKPOINTABLE_OBJECT_GRAPH"
    index = files["variables.index"]
    end = index.index(name) + len(name)
    changed = fuzzing.checkpoints.sealed(index[:end] + value + index[end + len(value) :], index)
    pending = fuzzing.checkpoints.npy(np.zeros((1, 2, 3), np.float32))
    return "step-00000003", {}, pending, changed, files["variables.data-00000-of-00001"], True


def _sweep(**fields):
    info = {**fuzzing.sweeps.INFO, **fields}
    return json.dumps({name: value for name, value in info.items() if value is not None}).encode()


def _benchmark(**fields):
    info = fuzzing.benchmarks.info()
    info["constraints"][fuzzing.benchmarks.NAME].update(fields)
    return json.dumps(info).encode()


def _reference(**fields):
    results = copy.deepcopy(fuzzing.benchmarks.reference())
    results["constraints"]["r1"].update(fields)
    return json.dumps(results).encode()


READ = fuzzing.metrics.read_metrics
# By fault: what has it, what the fuzzer then raises, and the words.
FAULTS = {
    "slow": (fuzzing.targets, "LONGEST_SECONDS", 0.0, AssertionError, "it took"),
    "another error": (
        *(fuzzing.metrics, "read_metrics", lambda path: READ(path) if path.read_bytes() else {}["step"]),
        *(KeyError, "step"),
    ),
    "keeps too much": (fuzzing.metrics, "repair", lambda path, truncate_after=None: None, AssertionError, ""),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fuzzer_detects_a_faulty_reader(monkeypatch, fault):
    module, name, value, error, words = FAULTS[fault]
    monkeypatch.setattr(module, name, value)
    with pytest.raises(error, match=words):
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
    monkeypatch.setattr(fuzzing.metrics, "repair", lambda path, truncate_after=None: 1 / 0)
    assert fuzz.main(["--minutes", "0.01", "--only", "metrics"]) == 1
    output = capsys.readouterr()
    assert "metrics: a fault with seed 0" in output.out
    assert "ZeroDivisionError" in output.err
