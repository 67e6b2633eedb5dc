"""The command `ganlab verify` with fake checks: its calls, its output and its exit status."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from command_lines import invoke
from ganlab_verify import CHECKS, Row, Source, checks, process
from test_verification_page import ALL

import ganlab

LONG = "critic/weights/dense_1/kernel and three others of [two] layers " * 4

ROWS = {
    "replicas": Row("replicas", "passed", 2.5e-6, 1e-5, "1, 2 and 4 replicas train as one device does."),
    "graph": Row("graph", "passed", 0.0, 1e-5, LONG),
    "gradients": Row("gradients", "passed", 2e-8, 1e-5, "Those of its losses."),
    "microbatches": Row("microbatches", "refused", None, None, "Refused, as it must be: it needs the whole batch."),
    "resume": Row("resume", "passed", 0.0, 0.0, "Bit for bit."),
    "tpu": Row("tpu", "passed", 0.01, 1.0, "Compiles."),
}


@pytest.fixture
def verify(monkeypatch, own_plugins):
    """Runs a command line whose checks return given rows; the requested checks are in `verify.requested`."""

    def verify(*arguments, **answers):
        verify.requested = []

        def run(check, source, options):
            verify.requested.append((check, source, options))
            return {**ROWS, **answers}[check]

        monkeypatch.setattr("ganlab_verify.verifying.run", run)
        return invoke("verify", *arguments)

    return verify


def test_every_check_has_a_row_at_a_hundred_columns(verify):
    done = verify("--gin", "quickstart")
    assert (done.exit_code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[0].split() == ["check", "status", "figure", "limit"]
    starts = [text.split()[:4] for text in lines if text.split()[:1] and text.split()[0] in CHECKS]
    assert starts == [
        ["replicas", "passed", "2.5e-06", "1.0e-05"],
        ["graph", "passed", "0", "1.0e-05"],
        ["gradients", "passed", "2.0e-08", "1.0e-05"],
        ["microbatches", "refused", "Refused,", "as"],
        ["resume", "passed", "0", "0"],
        ["tpu", "passed", "1.0e-02", "1.0e+00"],
    ]
    assert "[two]" in done.stdout
    (options,) = {options for _, _, options in verify.requested}
    assert (options.replicas, options.iterations, options.topology) == ((1, 2, 4), 5, "v5e:2x2")


SKIPPED = Row("tpu", "skipped", None, None, "Skipped: the TPU compiler is not installed.")


def test_a_skipped_check_counts_only_if_it_was_requested(verify):
    done = verify("--gin", "quickstart", tpu=SKIPPED)
    assert (done.exit_code, "skipped" in done.stdout) == (0, True)
    assert not next(iter(verify.requested))[2].install
    assert verify("--gin", "quickstart", "--checks", "replicas,tpu", tpu=SKIPPED).exit_code == 1
    assert verify("--gin", "quickstart", "--checks", "tpu", tpu=SKIPPED).exit_code == 1
    assert verify("--gin", "quickstart", "--checks", "replicas", tpu=SKIPPED).exit_code == 0
    done = verify("--all", tpu=SKIPPED)
    assert done.exit_code == 0
    assert done.stdout.count("the TPU compiler is not installed") == 1


@pytest.mark.parametrize("status", ["failed", "not run"])
def test_a_check_that_has_not_passed_exits_with_1(verify, status):
    done = verify("--gin", "quickstart", tpu=Row("tpu", status, None, None, "No index can be reached."))
    assert done.exit_code == 1
    assert status in done.stdout
    assert "No index can be reached." in done.stdout


def test_options_reach_the_checks(verify):
    done = verify(
        *("--gin", "quickstart", "--param", "experiment.seed=3", "--checks", "resume,graph", "--replicas", "4,2"),
        *("--iterations", "7", "--topology", "v4:2x2x1", "--no-plugin", "ganlab_searches", "--install"),
    )
    assert done.exit_code == 0
    source = Source(("quickstart",), ("experiment.seed=3",), ("ganlab_searches",))
    options = checks.Options(replicas=(2, 4), iterations=7, topology="v4:2x2x1", install=True)
    assert sorted(verify.requested, key=str) == [("graph", source, options), ("resume", source, options)]


def test_json_has_every_row(verify):
    bad = Row("graph", "failed", float("inf"), 1e-5, "Words.", {"cause": "known"})
    done = verify("--gin", "quickstart", "--json", graph=bad)
    assert done.exit_code == 1
    answer = json.loads(done.stdout)
    assert answer["passed"] is False
    assert answer["options"] == {"replicas": [1, 2, 4], "iterations": 5, "topology": "v5e:2x2"}
    (experiment,) = answer["experiments"]
    assert experiment["experiment"] == "quickstart"
    assert [row["check"] for row in experiment["rows"]] == list(CHECKS)
    assert experiment["rows"][1] == {
        "check": "graph",
        "status": "failed",
        "figure": "Infinity",
        "limit": 1e-5,
        "detail": "Words.",
        "data": {"cause": "known"},
    }


def test_all_prints_a_table_of_the_shipped_experiments_and_explains_failures(verify):
    done = verify("--all", resume=Row("resume", "failed", 2.0, 0.0, "Two variables differ."))
    assert done.exit_code == 1
    assert max(map(len, done.stdout.splitlines())) <= 100
    header, *lines = done.stdout.splitlines()
    assert header.split() == ["experiment", *CHECKS]
    assert "quickstart" in ALL
    assert [text.split()[0] for text in lines[: len(ALL)]] == ALL
    cells = lines[ALL.index("quickstart")].split()
    assert " ".join(cells) == "quickstart 2.5e-6 < 1e-5 0 < 1e-5 2.0e-8 < 1e-5 refused failed 1.0e-02"
    assert done.stdout.count("resume failed: Two variables differ.") == len(ALL)
    assert {source.gin_files[0] for _, source, _ in verify.requested} == set(ALL)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing experiment: name a FILE"),
        (["--all", "--gin", "quickstart"], "or --all alone"),
        (["--gin", "quickstart", "--checks", "replica"], "Unknown check 'replica': choose from replicas,"),
        (["--gin", "quickstart", "--replicas", "two"], "'two' must be whole numbers from 1 to 64"),
        (["--gin", "quickstart", "--replicas", "0,2"], "'0,2' must be whole numbers from 1 to 64"),
        (["--gin", "quickstart", "--replicas", "3"], "experiment.batch_size = 64 does not divide over 3 replicas"),
        (["--gin", "quickstart", "--iterations", "1"], "1 is not in the range"),
        (["--gin", "quickstart", "--topology", "v5:2x2"], "Unknown TPU 'v5'"),
        (["--gin", "quickstar"], "Did you mean 'quickstart'?"),
        (["--gin", "quickstart", "--param", "experiment.stepz=1"], "Did you mean 'steps'?"),
    ],
)
def test_mistakes_exit_with_2_before_any_process_starts(verify, arguments, message):
    done = verify(*arguments)
    assert (done.exit_code, done.stdout, verify.requested) == (2, "", [])
    assert message in done.stderr


def test_a_check_that_could_not_finish_fails_with_the_reason(monkeypatch):
    def call(target, source, options, *, cpus):
        raise process.ProcessError("constraints.mine failed in penalty: no kernel (mine.py:9)", "Traceback ...")

    monkeypatch.setattr(checks, "call", call)
    row = checks.run("graph", Source(("quickstart",)), checks.Options())
    assert (row.check, row.status, row.figure) == ("graph", "failed", None)
    assert row.detail == "constraints.mine failed in penalty: no kernel (mine.py:9)"
    assert row.data["traceback"] == "Traceback ..."


@pytest.mark.slow
def test_a_process_error_is_one_line_and_keeps_its_traceback(tmp_path, monkeypatch):
    (tmp_path / "broken.py").write_text("def check(source):\n    raise KeyError(source.gin_files[0])\n\n\nimport os\n")
    (tmp_path / "dying.py").write_text("import os\n\n\ndef check(source):\n    os._exit(7)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(process.ProcessError, match=r"^KeyError: 'mine\.gin'$") as caught:
        process.call("broken:check", Source(("mine.gin",)), {}, cpus=2)
    assert 'broken.py", line 2, in check' in caught.value.trace
    with pytest.raises(process.ProcessError, match=r"The check's process died \(exit status 7\)"):
        process.call("dying:check", Source(("mine.gin",)), {}, cpus=2)


@pytest.mark.slow
def test_sigterm_ends_the_checks_and_leaves_no_folder(tmp_path):
    command = [sys.executable, "-m", "ganlab", "verify", "--gin", "quickstart", "--checks", "replicas,resume"]
    process = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(tmp_path)})
    until = time.monotonic() + 120
    while not list(tmp_path.iterdir()) and time.monotonic() < until:
        time.sleep(0.1)
    process.terminate()
    assert process.wait(60) == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


# From Python, as a notebook calls it.


@pytest.mark.slow
def test_verify_returns_a_row_for_each_check():
    (row,) = ganlab.verify("swiss_roll", checks=["gradients"], params=["architectures.mlp.width=8"])
    assert (row.check, row.status) == ("gradients", "passed")
    assert 0 < row.figure < row.limit


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"checks": ["gradient"]}, "'gradient' is not a check. Did you mean 'gradients'"),
        ({"gin": []}, "Missing experiment file"),
        ({"iterations": 1}, "iterations = 1 must be at least 2"),
        ({"replicas": [0]}, "from 1"),
        ({"gin": "swiss_rol"}, "swiss_roll"),
    ],
)
def test_a_mistake_in_python_is_found_before_any_process_starts(monkeypatch, arguments, message):
    monkeypatch.setattr("ganlab_verify.verifying.run", lambda *_: pytest.fail("a check was started"))
    with pytest.raises(ganlab.GanlabError, match=message):
        ganlab.verify(**{"gin": "swiss_roll", **arguments})
