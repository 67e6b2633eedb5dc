"""Worker processes on this machine, and the experiment that they train."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

import ganlab
from ganlab.training.checkpoints import Checkpoints

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


def config(hosts: list[str], index: int) -> str:
    """The `TF_CONFIG` of one of the workers at these addresses."""
    return json.dumps({"cluster": {"worker": hosts}, "task": {"type": "worker", "index": index}})


def numbers(run: ganlab.Run) -> tuple[int, dict[str, np.ndarray]]:
    """The step of a run's newest checkpoint, and everything in it by name."""
    checkpoint = Checkpoints(run.path / "checkpoints").latest()
    assert checkpoint is not None
    reader = tf.train.load_checkpoint(checkpoint.prefix)
    names = [name for name in reader.get_variable_to_shape_map() if "OBJECT_GRAPH" not in name]
    return checkpoint.step, {name: reader.get_tensor(name) for name in names}


def free_addresses(count: int) -> list[str]:
    """Addresses on this machine that nobody uses."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    finally:
        for one in sockets:
            one.close()
