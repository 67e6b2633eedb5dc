"""Worker processes on this machine, and the experiment that they train."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path

PATIENCE = 300
EXPERIMENT = """
experiment.dataset = @datasets.digits()
experiment.architecture = @architectures.mlp()
experiment.loss = @losses.wasserstein()
experiment.constraints = [@constraints.spectral_norm(), @constraints.gradient_penalty()]
experiment.critic_optimizer = @optimizers.{optimizer}()
experiment.generator_optimizer = @optimizers.{optimizer}()
experiment.batch_size = 16
experiment.critic_steps = 2
experiment.log_every = 3
experiment.ema_decay = 0.9
architectures.mlp.width = 16
optimizers.{optimizer}.learning_rate = 0.01
"""


def start(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """One `ganlab run`."""
    return subprocess.Popen(
        [sys.executable, "-m", "ganlab", "run", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def start_several(folder: Path, count: int, *arguments: str) -> list[subprocess.Popen[str]]:
    """Workers that train one run."""
    hosts = free_addresses(count)
    return [start(folder, *arguments, TF_CONFIG=config(hosts, index)) for index in range(count)]


def ended(processes: list[subprocess.Popen[str]]) -> tuple[list[int], list[str]]:
    """The exit codes of processes, once all have ended, and what each printed."""
    try:
        outputs = [process.communicate(timeout=PATIENCE)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    return [process.returncode for process in processes], outputs


def wait_for_checkpoints(run: Path, count: int, processes: list[subprocess.Popen[str]]) -> None:
    """Waits until this many more checkpoints are written by processes that still run."""
    seen: set[str] = set()
    deadline = time.monotonic() + PATIENCE
    before = {path.name for path in (run / "checkpoints").glob("step-*")}
    while len(seen) < count:
        assert time.monotonic() < deadline
        if any(process.poll() is not None for process in processes):
            for process in processes:  # The others might wait for the one that ended.
                process.terminate()
            raise AssertionError("\n".join(ended(processes)[1]))
        seen |= {path.name for path in (run / "checkpoints").glob("step-*")} - before
        time.sleep(0.01)


def config(hosts: list[str], index: int) -> str:
    """The `TF_CONFIG` of one of the workers at these addresses."""
    return json.dumps({"cluster": {"worker": hosts}, "task": {"type": "worker", "index": index}})


def free_addresses(count: int) -> list[str]:
    """Addresses on this machine that nobody uses; their ports are none of those that the system hands out."""
    with contextlib.ExitStack() as stack:
        return [f"127.0.0.1:{_bound_port(stack.enter_context(socket.socket()))}" for _ in range(count)]


def _bound_port(opened: socket.socket) -> int:
    for port in random.SystemRandom().sample(range(10_000, 32_000), 100):
        with contextlib.suppress(OSError):
            opened.bind(("", port))
            return port
    raise AssertionError("None of 100 ports is free.")
