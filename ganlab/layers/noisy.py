"""Layers with noise that is right under replicas.

Keras' own noisy layers keep a seed: every replica draws the same mask, and the seed is not in the checkpoint. These
layers draw from the caller of the network: in training that is the core, which gives row i the numbers of example i,
new at each step, and the same after a resume. Outside training they return their input.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import keras
import tensorflow as tf

from ganlab.layers.base import Layer


class NoiseSource(Protocol):
    """Interface for a source of random numbers of shape `(batch, ...)`, drawn row by row."""

    def uniform(self, shape: Sequence[int]) -> tf.Tensor:
        """Uniform numbers in [0, 1), float32."""

    def normal(self, shape: Sequence[int]) -> tf.Tensor:
        """Standard normal numbers, float32."""


_local = threading.local()  # each replica is traced in its own thread


@contextlib.contextmanager
def noise_from(source: NoiseSource) -> Iterator[None]:
    """Context manager: the layers of this module draw from `source`."""
    before = getattr(_local, "source", None)
    _local.source = source
    try:
        yield
    finally:
        _local.source = before


def noise(training: bool | None) -> NoiseSource | None:
    """The random numbers of the network that is being called, for `call` of a layer with noise of its own.

    A layer that draws sets `noisy = True`. If the noise is zero by its settings, that is a property that is False.

    Args:
        training: The argument of that name that Keras passes to `call`.

    Returns:
        The source, whose row i belongs to the example in row i, on any number of replicas. None outside training, where
        there is no noise.
    """
    return getattr(_local, "source", None) if training else None


@keras.saving.register_keras_serializable(package="ganlab")
class Dropout(Layer):
    """Zeroes each unit with probability `rate` and scales the rest by `1 / (1 - rate)` (Srivastava et al., 2014)."""

    arguments = "rate"

    def __init__(self, rate: float, **kwargs: Any) -> None:
        """Args: rate: The probability, at least 0 and below 1; kwargs: Keras' own, for example `name`."""
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ValueError(f"ganlab.layers.Dropout(rate={rate!r}): a rate must be at least 0 and below 1.")
        self.rate = rate

    @property
    def noisy(self) -> bool:
        """Whether it drops anything."""
        return self.rate > 0

    @property
    def lipschitz_constant(self) -> float:
        """The scale of the remaining units; the mask belongs to the example, wherever the example is moved."""
        return 1 / (1 - self.rate)

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Drops units in training; returns `inputs` otherwise."""
        source = noise(training)
        if source is None or self.rate == 0:
            return inputs
        mask = tf.cast(source.uniform(inputs.shape) >= self.rate, inputs.dtype)
        return inputs * mask / tf.cast(1 - self.rate, inputs.dtype)


@keras.saving.register_keras_serializable(package="ganlab")
class GaussianNoise(Layer):
    """Adds Gaussian noise of standard deviation `stddev` to each unit."""

    arguments = "stddev"

    def __init__(self, stddev: float, **kwargs: Any) -> None:
        """Args: stddev: In units of the input, at least 0; kwargs: Keras' own, for example `name`."""
        super().__init__(**kwargs)
        if not stddev >= 0:
            raise ValueError(f"ganlab.layers.GaussianNoise(stddev={stddev!r}): it must be at least 0.")
        self.stddev = stddev

    @property
    def noisy(self) -> bool:
        """Whether it adds anything."""
        return self.stddev > 0

    @property
    def lipschitz_constant(self) -> float:
        """One, because the noise belongs to the example, wherever the example is moved."""
        return 1.0

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Adds noise in training; returns `inputs` otherwise."""
        source = noise(training)
        if source is None:
            return inputs
        return inputs + tf.cast(self.stddev * source.normal(inputs.shape), inputs.dtype)


def noisy_layers(model: keras.Model) -> list[keras.layers.Layer]:
    """The layers of a built model that draw noise in training, nested ones included; not those whose noise is zero."""
    layers = model._flatten_layers(include_self=False, recursive=True)
    return [layer for layer in layers if getattr(layer, "noisy", False)]
