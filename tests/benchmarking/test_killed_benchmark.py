"""A benchmark that is killed and resumed, with a stranger's constraint in a single file."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from small_suites import write_suite

PLUGIN = '''
import tensorflow as tf

import ganlab


class Tilt(ganlab.Constraint):
    """Penalizes large scores."""

    def __init__(self, *, weight: float = 1.0):
        """Chooses the penalty."""
        self.weight = weight

    def penalty(self, critic, batch, state, replica):
        """The penalty, `(local_batch,)`."""
        return self.weight * tf.square(critic(batch.real))


@ganlab.hookimpl
def ganlab_constraints():
    return {"tilt": Tilt}
'''


def start(folder, *arguments):
    command = [sys.executable, "-P", "-m", "ganlab", "benchmark", "--jobs", "2", *arguments]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def status(run):
    try:
        return json.loads(run.read_text())["status"]
    except FileNotFoundError:
        return ""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals a trial that its sweep was killed")
def test_a_killed_benchmark_repeats_nothing_and_ends_whole(tmp_path):
    write_suite(tmp_path)
    (tmp_path / "ganlab_plugins.py").write_text(PLUGIN)
    chosen = ["--constraint", "tilt", "--constraint", "weight_clipping"]
    killed = start(tmp_path, "--suite", "tiny.toml", "--name", "b", *chosen)
    folder = tmp_path / "runs" / "b"
    deadline = time.monotonic() + 300
    while not list((folder / "tilt" / "w1").glob("*/s*/run.json")):  # tuned, and now reporting
        assert killed.poll() is None, killed.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()

    cost = json.loads((folder / "benchmark.json").read_text())["constraints"]["tilt"]["cost"]
    finished = [run for run in (folder / "tilt").glob("*/*/*/run.json") if status(run) == "completed"]
    assert len(finished) >= 4  # two rates and two weights
    before = {run: (run.read_bytes(), run.stat().st_mtime_ns) for run in finished}

    again = start(tmp_path, "--resume", str(folder), "--json")
    said, complaints = again.communicate(timeout=500)
    assert again.returncode == 0, complaints
    assert {run: (run.read_bytes(), run.stat().st_mtime_ns) for run in finished} == before
    found = json.loads(said)
    assert json.loads((folder / "benchmark.json").read_text())["constraints"]["tilt"]["cost"] == cost
    assert found["complete"]
    for name in ("tilt", "weight_clipping"):
        tasks = found["constraints"][name]["tasks"]
        assert {task: tasks[task]["status"] for task in ("cost", "w1", "fraction")} == dict.fromkeys(
            ("cost", "w1", "fraction"), "completed"
        )
        assert tasks["w1"]["figures"]["loss"]["n"] == 2
        assert tasks["cost"]["figures"]["ratio"]["mean"] > 0
    # The bound of a chain of dense layers is a product of norms, and above every slope.
    assert found["constraints"]["weight_clipping"]["tasks"]["bound"]["figures"]["ratio"]["mean"] >= 1
