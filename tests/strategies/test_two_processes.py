"""Two worker processes on this machine train what one process trains."""

from __future__ import annotations

import pytest
import workers

import ganlab


@pytest.mark.slow
def test_two_workers_log_what_one_process_logs(tmp_path):
    experiment = workers.EXPERIMENT.format(optimizer="sgd")
    (tmp_path / "experiment.gin").write_text(experiment + "experiment.steps = 12\nexperiment.evaluate_every = 5\n")

    def arguments(strategy):
        return "--gin", "experiment.gin", "--name", strategy, "--param", f"experiment.strategy=@strategies.{strategy}()"

    processes = [workers.start(tmp_path, *arguments("one_device"))]
    processes += workers.start_two(tmp_path, *arguments("multi_worker"))
    try:
        outputs = [process.communicate(timeout=150)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0, 0], "\n".join(outputs)
    assert "Completed at step 12 of 12" in outputs[1]
    assert "Worker done" in outputs[2]

    runs = tmp_path / "runs" / "experiment"
    assert sorted(path.name for path in runs.iterdir()) == ["multi_worker", "one_device"]
    one, two = ganlab.Run(runs / "one_device"), ganlab.Run(runs / "multi_worker")
    assert (one.info["replicas"], two.info["replicas"]) == (1, 2)
    rows, bounds = (
        [[r for r in run.metrics() if bool(r.replicas) == seen] for run in (one, two)] for seen in (True, False)
    )
    assert {r.tag for run in bounds for r in run} == {"constraints/spectral_norm/lipschitz_bound"}
    assert len(rows[0]) == len(rows[1]) == 4 * 5
    for alone, together in zip(*rows, strict=True):
        assert (alone.step, alone.tag) == (together.step, together.tag)
        assert together.reduced == pytest.approx(alone.reduced, rel=1e-5, abs=1e-6)
        assert len(together.replicas) == 2
        assert together.replicas[0] != together.replicas[1]
        assert sum(together.replicas) / 2 == pytest.approx(together.reduced, rel=1e-6, abs=1e-7)
