"""Two workers, one of which is stopped or killed again and again, end like two that were never interrupted."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
import workers

import ganlab

_EXPERIMENT = workers.EXPERIMENT.format(optimizer="adam") + (
    "experiment.strategy = @strategies.multi_worker()\n"
    "experiment.steps = 600\nexperiment.evaluate_every = 150\nexperiment.checkpoint_every = 10\n"
)
_PATIENCE = 300


def wait_for_checkpoints(run, count, processes):
    """Waits until this many more checkpoints are written."""
    seen, deadline = set(), time.monotonic() + _PATIENCE
    before = {path.name for path in (run / "checkpoints").glob("step-*")}
    while len(seen) < count:
        assert time.monotonic() < deadline
        assert all(process.poll() is None for process in processes), [p.communicate()[0] for p in processes]
        seen |= {path.name for path in (run / "checkpoints").glob("step-*")} - before
        time.sleep(0.02)


def outcome(processes):
    try:
        outputs = [process.communicate(timeout=_PATIENCE)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [process.returncode for process in processes], outputs


@pytest.mark.slow
def test_workers_that_lose_one_another_resume_bit_for_bit(tmp_path):
    (tmp_path / "experiment.gin").write_text(_EXPERIMENT)
    runs = tmp_path / "runs" / "experiment"
    codes, outputs = outcome(workers.start_several(tmp_path, 2, "--gin", "experiment.gin", "--name", "whole"))
    assert codes == [0, 0], "\n".join(outputs)

    arguments = ["--gin", "experiment.gin", "--name", "killed"]
    for sent, whom in ((signal.SIGTERM, 1), (signal.SIGKILL, 0), (signal.SIGKILL, 1), (signal.SIGTERM, 0)):
        processes = workers.start_several(tmp_path, 2, *arguments)
        wait_for_checkpoints(runs / "killed", 2, processes)
        os.kill(processes[whom].pid, sent)
        codes, outputs = outcome(processes)
        if sent is signal.SIGTERM:
            assert codes == [143, 143], "\n".join(outputs)
        else:
            assert codes[whom] == -signal.SIGKILL
            assert codes[1 - whom] == 1, "\n".join(outputs)
            assert "another worker is gone" in outputs[1 - whom]
            assert "Traceback" not in outputs[1 - whom]
        info = ganlab.Run(runs / "killed").info
        # A chief that was killed could not record it.
        assert info["status"] == ("running" if (sent, whom) == (signal.SIGKILL, 0) else "interrupted")
        assert info["step"] < 600
        arguments = ["--resume", str(runs / "killed")]
    codes, outputs = outcome(workers.start_several(tmp_path, 2, *arguments))
    assert codes == [0, 0], "\n".join(outputs)

    whole, killed = ganlab.Run(runs / "whole"), ganlab.Run(runs / "killed")
    assert len(killed.info["resumed"]) == 4
    assert (whole.path / "metrics.jsonl").read_bytes() == (killed.path / "metrics.jsonl").read_bytes()
    (step, one), (other_step, other) = workers.numbers(whole), workers.numbers(killed)
    assert step == other_step == 600
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(other[name], value, err_msg=name)
