"""The two experiments that everything is measured on, as ganlab trains them; also a plugin file with their images."""

from __future__ import annotations

from typing import Any

import numpy as np

import ganlab
from ganlab.lazy import tensorflow as tf


class Table(ganlab.Dataset):
    """Random images held in memory, as the hand-written loops have them."""

    def __init__(self, *, shape: tuple[int, ...] = (28, 28, 1), size: int = 4096) -> None:
        """Draws `size` examples of that shape, uniform in [-1, 1)."""
        self.sample_shape, self.size = shape, size
        # A tensor, which graphs refer to: an array would become a constant, and part of each of them.
        self._examples = tf.constant(np.random.default_rng(0).uniform(-1, 1, (size, *shape)), tf.float32)

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The rows of these numbers."""
        return tf.gather(self._examples, numbers)


@ganlab.hookimpl
def ganlab_datasets() -> dict[str, type[ganlab.Dataset]]:
    """The images, for experiment files."""
    return {"table": Table}


def mlp(*, width: int = 512, depth: int = 3, **parts: Any) -> ganlab.Experiment:
    """The paper's toy networks on the 8 Gaussians, which are made as they are needed; batch 256."""
    given = {
        "dataset": ganlab.component("datasets", "gaussian_ring")(),
        "architecture": ganlab.component("architectures", "mlp")(width=width, depth=depth),
        "constraints": [ganlab.component("constraints", "gradient_penalty")(weight=0.1)],
        "batch_size": 256,
    }
    return _experiment({**given, **parts})


def dcgan(*, channels: int = 64, **parts: Any) -> ganlab.Experiment:
    """The paper's MNIST networks on random images; batch 64."""
    networks = ganlab.component("architectures", "dcgan")(channels=channels, generator_normalization="none")
    given = {
        "dataset": Table(),
        "architecture": networks,
        "constraints": [ganlab.component("constraints", "gradient_penalty")(weight=10.0)],
        "batch_size": 64,
    }
    return _experiment({**given, **parts})


CASES = {"mlp": mlp, "dcgan": dcgan}


def _experiment(parts: dict[str, Any]) -> ganlab.Experiment:
    given = {
        "loss": ganlab.component("losses", "wasserstein")(),
        "critic_optimizer": ganlab.component("optimizers", "adam")(learning_rate=1e-4),
        "generator_optimizer": ganlab.component("optimizers", "adam")(learning_rate=1e-4),
        "critic_steps": 5,
        "steps": 1_000_000,
    }
    if "strategy" not in parts:  # with several workers this device does not exist
        given["strategy"] = ganlab.component("strategies", "one_device")(device="CPU:0")
    return ganlab.experiment(**{**given, **parts})
