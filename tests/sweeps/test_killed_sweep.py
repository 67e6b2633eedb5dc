"""A sweep that is killed and resumed gives the same bits as one that was left alone."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

GIN = """
include 'eight_gaussians'
experiment.steps = 1200
experiment.batch_size = 32
experiment.log_every = 25
experiment.checkpoint_every = 200
experiment.evaluate_every = 0
experiment.strategy = @strategies.one_device()
architectures.mlp.width = 8
"""
CONSTRAINTS = "experiment.constraints=[@constraints.weight_clipping(), @constraints.gradient_penalty()]"
FIRST, LAST = (f"constraints={name}/s0" for name in ("weight_clipping", "gradient_penalty"))


@pytest.fixture
def sweep(tmp_path):
    """Starts `ganlab sweep` in its own process."""
    (tmp_path / "toy.gin").write_text(GIN)

    def sweep(*arguments):
        command = [sys.executable, "-P", "-m", "ganlab", "sweep", *arguments]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        return subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    return sweep


def begin(sweep, name, jobs):
    return sweep("--gin", "toy.gin", "--grid", CONSTRAINTS, "--seeds", "0", "--jobs", str(jobs), "--name", name)


def status(run):
    try:
        info = json.loads((run / "run.json").read_text())
    except FileNotFoundError:
        return "", 0
    return info["status"], info["step"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux signals a trial that its sweep was killed")
def test_a_resumed_sweep_loses_nothing_and_repeats_nothing(sweep, tmp_path):
    whole = begin(sweep, "whole", jobs=2)
    said, _ = whole.communicate(timeout=300)
    assert whole.returncode == 0, said

    killed, folder = begin(sweep, "killed", jobs=1), tmp_path / "runs" / "killed"
    deadline = time.monotonic() + 200
    # Half-way: the first is finished, and the other has rows but not all of them.
    while not (status(folder / LAST)[0] == "running" and 200 <= status(folder / LAST)[1] < 1200):
        assert killed.poll() is None, killed.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    files = [folder / FIRST / file for file in ("run.json", "metrics.jsonl")]
    finished = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in files}
    assert status(folder / FIRST)[0] == "completed"

    again = sweep("--resume", str(folder), "--json")
    said, _ = again.communicate(timeout=300)
    assert again.returncode == 0, said
    assert [status(folder / name) for name in (FIRST, LAST)] == [("completed", 1200)] * 2
    assert {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in files} == finished
    for name, times in ((FIRST, 0), (LAST, 1)):
        assert len(json.loads((folder / name / "run.json").read_text()).get("resumed", [])) == times
        there = (tmp_path / "runs" / "whole" / name / "metrics.jsonl").read_bytes()
        assert (folder / name / "metrics.jsonl").read_bytes() == there, name
        assert there.count(b"\n") == 48
