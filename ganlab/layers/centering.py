"""Normalization without division."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from ganlab.layers.base import Layer


@keras.saving.register_keras_serializable(package="ganlab")
class LayerCentering(Layer):
    """Subtracts the mean of each example and adds a bias: `x - mean(x) + beta`.

    Layer normalization without the division by a deviation, which no small Lipschitz constant bounds; as in
    deel-torchlip and orthogonium.
    """

    arguments = "axis center"
    lipschitz_constant = 1.0  # an orthogonal projection, and a bias

    def __init__(self, axis: int | Sequence[int] = -1, center: bool = True, **kwargs: Any) -> None:
        """Chooses what is centred.

        Args:
            axis: The axis or axes of the mean, without the batch's: -1 for the channels of each pixel, (1, 2) for the
                pixels of each channel.
            center: Whether to add the trained bias `beta`, one number for each channel.
            **kwargs: Keras' own, for example `name`.
        """
        super().__init__(**kwargs)
        self.axis, self.center = axis if isinstance(axis, int) else tuple(axis), bool(center)

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Creates the bias.

        Raises:
            ValueError: The mean is over the batch.
        """
        axes = (self.axis,) if isinstance(self.axis, int) else self.axis
        if any(axis % len(input_shape) == 0 for axis in axes):
            raise ValueError(
                f"ganlab.layers.LayerCentering(axis={self.axis!r}) would mix the examples of a batch: leave out axis 0."
            )
        self.beta = None
        if self.center:
            self.beta = self.add_weight(shape=(input_shape[-1],), initializer="zeros", name="beta")

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The centred input, of its shape."""
        y = inputs - tf.reduce_mean(inputs, self.axis, keepdims=True)
        return y if self.beta is None else y + self.beta
