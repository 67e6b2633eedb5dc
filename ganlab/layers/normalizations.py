"""Normalizations of each example alone whose second derivatives are right.

Keras' own take their moments from `tf.nn.moments`, which stops the gradient of the mean inside the variance. That
leaves the first derivative unchanged, because deviations from a mean add up to zero, but removes a term from the
second: under a penalty on the critic's slope the gradient of its weights is wrong, by a tenth of its norm in small
critics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from ganlab.functional import moments


@keras.saving.register_keras_serializable(package="ganlab")
class LayerNormalization(keras.layers.LayerNormalization):
    """Normalizes each example over `axis` (Ba, Kiros and Hinton, "Layer normalization", 2016).

    The same arguments, weights and output as `keras.layers.LayerNormalization`, up to rounding. Computes in float32, or
    in float64 for float64 input; returns the layer's compute dtype.
    """

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The normalized input, of its shape."""
        if self.rms_scaling:
            return super().call(inputs)
        x = _wide(inputs)
        mean, variance = moments(x, self.axis)
        y = (x - mean) * tf.math.rsqrt(variance + self.epsilon)
        rank = len(x.shape)
        axes = {axis % rank for axis in self.axis}
        shape = [x.shape[axis] if axis in axes else 1 for axis in range(rank)]
        return tf.cast(_scaled(y, self.gamma, self.beta, shape), self.compute_dtype)


@keras.saving.register_keras_serializable(package="ganlab")
class GroupNormalization(keras.layers.GroupNormalization):
    """Normalizes each example over groups of channels and all other axes (Wu and He, "Group normalization", 2018).

    The same arguments, weights and output as `keras.layers.GroupNormalization`, up to rounding. Computes in float32, or
    in float64 for float64 input; returns the layer's compute dtype.
    """

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Creates the weights.

        Raises:
            ValueError: A group is a single number of the example, or the groups do not divide the channels.
        """
        super().build(input_shape)
        axis = self.axis % len(input_shape)
        if math.prod(length or 2 for i, length in enumerate(input_shape) if i not in (0, axis)) == 1 and (
            input_shape[axis] == self.groups
        ):
            raise ValueError(
                f"ganlab.layers.{type(self).__name__} cannot normalize the shape {tuple(input_shape)} in {self.groups} "
                "groups: each is a single number, which would always become zero. Use fewer groups, or "
                "ganlab.layers.LayerNormalization, which normalizes over all channels."
            )

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The normalized input, of its shape."""
        x, axis = _wide(inputs), self.axis % len(inputs.shape)
        length, dynamic = inputs.shape[axis] // self.groups, tf.shape(inputs)
        shape = [dynamic[i] if size is None else size for i, size in enumerate(inputs.shape)]
        x = tf.reshape(x, [*shape[:axis], self.groups, length, *shape[axis + 1 :]])
        mean, variance = moments(x, [i for i in range(1, len(x.shape)) if i != axis])
        y = (x - mean) * tf.math.rsqrt(variance + self.epsilon)
        ones = [1] * len(shape)
        y = _scaled(y, self.gamma, self.beta, [*ones[:axis], self.groups, length, *ones[axis + 1 :]])
        return tf.cast(tf.reshape(y, shape), self.compute_dtype)


@keras.saving.register_keras_serializable(package="ganlab")
class InstanceNormalization(GroupNormalization):
    """Normalizes each channel of each example over all other axes (Ulyanov, Vedaldi and Lempitsky, 2016).

    "Instance normalization: the missing ingredient for fast stylization". A `GroupNormalization` with as many groups as
    channels. In a dense layer's output a channel is a single number, which `build` refuses.
    """

    def __init__(self, axis: int = -1, epsilon: float = 1e-3, **kwargs: Any) -> None:
        """Takes the arguments of `keras.layers.GroupNormalization`, except `groups`.

        Args:
            axis: The channels' axis.
            epsilon: Added to the variance.
            **kwargs: `center`, `scale`, their initializers, regularizers and constraints; Keras' own, like `name`.
        """
        super().__init__(groups=-1, axis=axis, epsilon=epsilon, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """Keras' configuration."""
        config = super().get_config()
        del config["groups"]
        return config


def _wide(x: tf.Tensor) -> tf.Tensor:
    """Casts half precision to float32: squares of half-precision numbers overflow, and their means are rounded."""
    x = tf.convert_to_tensor(x)
    return x if x.dtype in (tf.float32, tf.float64) else tf.cast(x, tf.float32)


def _scaled(y: tf.Tensor, gamma: Any, beta: Any, shape: Sequence[int | None]) -> tf.Tensor:
    if gamma is not None:
        y *= tf.cast(tf.reshape(gamma, shape), y.dtype)
    if beta is not None:
        y += tf.cast(tf.reshape(beta, shape), y.dtype)
    return y
