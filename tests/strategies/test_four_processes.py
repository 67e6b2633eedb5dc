"""Four worker processes on this machine train what one process trains, though one is slow or lost."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
import workers
from whole_runs import assert_equal_bits, checkpointed

import ganlab


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of an experiment."""
    here = tmp_path_factory.mktemp("four")
    experiment = workers.EXPERIMENT.format(optimizer="sgd")
    steps = "experiment.steps = 12\nexperiment.evaluate_every = 5\nexperiment.checkpoint_every = 1\n"
    (here / "experiment.gin").write_text(experiment + steps)
    return here


def arguments(name, strategy="multi_worker"):
    params = [f"experiment.strategy=@strategies.{strategy}()"]
    if strategy == "multi_worker":
        params.append("strategies.multi_worker.bucket_bytes=64")  # less than a layer: several all-reduces an update
    return "--gin", "experiment.gin", "--name", name, *(word for param in params for word in ("--param", param))


def run(folder, name):
    return ganlab.Run(folder / "runs" / "experiment" / name)


@pytest.fixture(scope="module")
def four(folder):
    """The run of four processes of which one is slow, and what each of them printed."""
    processes = workers.start_several(folder, 4, *arguments("four"))
    workers.wait_for_checkpoints(folder / "runs" / "experiment" / "four", 1, processes)
    for _ in range(3):  # the others wait
        os.kill(processes[2].pid, signal.SIGSTOP)
        time.sleep(0.7)
        os.kill(processes[2].pid, signal.SIGCONT)
        time.sleep(0.1)
    codes, outputs = workers.ended(processes)
    assert codes == [0, 0, 0, 0], "\n".join(outputs)
    return run(folder, "four"), outputs


@pytest.mark.slow
def test_four_workers_train_and_log_what_one_process_does_while_one_is_slow(folder, four):
    four, outputs = four
    assert "Completed at step 12 of 12" in outputs[0]
    assert all("Worker done" in output for output in outputs[1:])
    codes, outputs = workers.ended([workers.start(folder, *arguments("one", "one_device"))])
    assert codes == [0], outputs[0]
    assert {path.name for path in (folder / "runs" / "experiment").iterdir()} <= {"four", "one", "lost"}
    one = run(folder, "one")
    assert (one.info["replicas"], four.info["replicas"]) == (1, 4)
    rows, bounds = (
        [[r for r in found.metrics() if bool(r.replicas) == seen] for found in (one, four)] for seen in (True, False)
    )
    assert {r.tag for found in bounds for r in found} == {"constraints/spectral_norm/lipschitz_bound"}
    assert len(rows[0]) == len(rows[1]) == 4 * 5
    for alone, together in zip(*rows, strict=True):
        assert (alone.step, alone.tag) == (together.step, together.tag)
        assert together.reduced == pytest.approx(alone.reduced, rel=1e-5, abs=1e-6)
        assert len(set(together.replicas)) == 4
        assert sum(together.replicas) / 4 == pytest.approx(together.reduced, rel=1e-6, abs=1e-7)
    step, weights = checkpointed(one)
    assert step == 12
    for name, value in checkpointed(four)[1].items():
        scale = max(float(np.linalg.norm(weights[name])), 1e-3)
        assert np.linalg.norm(np.asarray(value, np.float64) - weights[name]) < 1e-5 * scale, name


@pytest.mark.slow
def test_a_lost_worker_ends_all_four_which_resume_bit_for_bit(folder, four):
    processes = workers.start_several(folder, 4, *arguments("lost"))
    workers.wait_for_checkpoints(folder / "runs" / "experiment" / "lost", 1, processes)
    os.kill(processes[3].pid, signal.SIGKILL)
    codes, outputs = workers.ended(processes)
    assert codes == [1, 1, 1, -signal.SIGKILL], "\n".join(outputs)
    assert all("another worker is gone" in output for output in outputs[:3])
    assert run(folder, "lost").info["status"] == "interrupted"
    codes, outputs = workers.ended(workers.start_several(folder, 4, "--resume", str(run(folder, "lost").path)))
    assert codes == [0, 0, 0, 0], "\n".join(outputs)
    assert_equal_bits(four[0], run(folder, "lost"))
