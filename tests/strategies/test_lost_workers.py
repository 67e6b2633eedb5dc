"""Two workers, one of which is stopped or killed again and again, end like two that were never interrupted."""

from __future__ import annotations

import os
import signal

import pytest
import workers
from whole_runs import assert_equal_bits

import ganlab

_EXPERIMENT = workers.EXPERIMENT.format(optimizer="adam") + (
    "experiment.strategy = @strategies.multi_worker()\n"
    "experiment.steps = 600\nexperiment.evaluate_every = 150\nexperiment.checkpoint_every = 10\n"
)


@pytest.mark.slow
def test_workers_that_lose_one_another_resume_bit_for_bit(tmp_path):
    (tmp_path / "experiment.gin").write_text(_EXPERIMENT)
    runs = tmp_path / "runs" / "experiment"
    codes, outputs = workers.ended(workers.start_several(tmp_path, 2, "--gin", "experiment.gin", "--name", "whole"))
    assert codes == [0, 0], "\n".join(outputs)

    arguments = ["--gin", "experiment.gin", "--resume-or-start", "killed"]
    for sent, whom in ((signal.SIGTERM, 1), (signal.SIGKILL, 0), (signal.SIGKILL, 1), (signal.SIGTERM, 0)):
        processes = workers.start_several(tmp_path, 2, *arguments)
        workers.wait_for_checkpoints(runs / "killed", 2, processes)
        os.kill(processes[whom].pid, sent)
        codes, outputs = workers.ended(processes)
        if sent is signal.SIGTERM:
            assert codes == [143, 143], "\n".join(outputs)
            assert "Worker stopped at step" in outputs[1]
        else:
            assert codes[whom] == -signal.SIGKILL
            assert codes[1 - whom] == 1, "\n".join(outputs)
            assert "another worker is gone" in outputs[1 - whom]
            assert "Traceback" not in outputs[1 - whom]
        info = ganlab.Run(runs / "killed").info
        # A chief that was killed could not record it.
        assert info["status"] == ("running" if (sent, whom) == (signal.SIGKILL, 0) else "interrupted")
        assert info["step"] < 600
    codes, outputs = workers.ended(workers.start_several(tmp_path, 2, *arguments))
    assert codes == [0, 0], "\n".join(outputs)

    whole, killed = ganlab.Run(runs / "whole"), ganlab.Run(runs / "killed")
    assert len(killed.info["resumed"]) == 4
    assert whole.info["step"] == 600
    assert_equal_bits(whole, killed)
