"""Two worker processes on this machine train what one process trains."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import ganlab

_EXPERIMENT = """
experiment.dataset = @datasets.digits()
experiment.architecture = @architectures.mlp()
experiment.loss = @losses.wasserstein()
experiment.constraints = [@constraints.spectral_norm(), @constraints.gradient_penalty()]
experiment.critic_optimizer = @optimizers.sgd()
experiment.generator_optimizer = @optimizers.sgd()
experiment.batch_size = 16
experiment.critic_steps = 2
experiment.steps = 12
experiment.log_every = 3
experiment.ema_decay = 0.9
experiment.evaluate_every = 5
architectures.mlp.width = 16
optimizers.sgd.learning_rate = 0.01
"""


def _start(folder: Path, strategy: str, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ganlab", "run", "--gin", "experiment.gin", "--name", strategy]
    command += ["--param", f"experiment.strategy=@strategies.{strategy}()"]
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def test_two_workers_log_what_one_process_logs(tmp_path):
    (tmp_path / "experiment.gin").write_text(_EXPERIMENT)
    workers = [f"127.0.0.1:{port}" for port in _free_ports(2)]
    processes = [_start(tmp_path, "one_device")]
    for index in range(2):
        cluster = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
        processes.append(_start(tmp_path, "multi_worker", TF_CONFIG=json.dumps(cluster)))
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
