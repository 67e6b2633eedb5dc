"""Normalization without division."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from ganlab.functional import fixed
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


@keras.saving.register_keras_serializable(package="ganlab")
class BatchLipNorm(Layer):
    """Subtracts moving means of channels and adds a bias: `x - mean + sqrt(max(variance) + epsilon) * beta`.

    Batch-Lipschitz normalization, as in deel-ai/deel-torchlip (a477697, deel/torchlip/modules/normalization.py:93),
    divides all channels by one deviation, the largest, and scores are multiplied by the product of these in the end.
    Where what is between is homogeneous, such as layers of constant one without biases and sorting, division and
    product cancel, up to the bias: that is this layer, of constant one by itself. Without `normalize` it is
    `BatchCentering` there.

    Moments are moving averages in training too, from before the call, as in deel-ai/orthogonium (d54ed63,
    orthogonium/layers/normalization.py:18), and not those of the batch. So a score is that of its example alone, as
    constraints and certificates need it, and the difference of means between real examples and samples is left in.
    A call in training moves the averages towards the moments of the global batch, outside of any gradient.
    """

    arguments = "momentum epsilon center normalize"
    lipschitz_constant = 1.0  # a shift
    synchronized = True  # communicates with other replicas, and takes no part of a batch

    def __init__(
        self,
        momentum: float = 0.99,
        epsilon: float = 1e-5,
        center: bool = True,
        normalize: bool = True,
        **kwargs: Any,
    ) -> None:
        """Chooses the moments.

        Args:
            momentum: The decay of the moving averages in one call; a critic has two in an update.
            epsilon: Added to the largest variance.
            center: Whether to add the trained bias `beta`, one number for each channel.
            normalize: Whether the bias is in units of the largest deviation.
            **kwargs: Keras' own, for example `name`.
        """
        super().__init__(**kwargs)
        self.momentum, self.epsilon = float(momentum), float(epsilon)
        self.center, self.normalize = bool(center), bool(normalize)

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Creates the bias and the moving averages."""

        def weight(name: str, initializer: str, **arguments: Any) -> keras.Variable:
            shape = (input_shape[-1],)
            return self.add_weight(shape=shape, initializer=initializer, name=name, autocast=False, **arguments)

        self.beta = weight("beta", "zeros") if self.center else None
        self.moving_mean = weight("moving_mean", "zeros", trainable=False)
        self.moving_variance = weight("moving_variance", "ones", trainable=False)

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """The shifted input, of its shape."""
        averages = [self.moving_mean, self.moving_variance]
        mean, variance = (tf.convert_to_tensor(average) for average in averages)
        shift = -mean
        if self.beta is not None:
            scale = tf.sqrt(tf.reduce_max(variance) + self.epsilon) if self.normalize else 1.0
            shift += scale * tf.convert_to_tensor(self.beta)
        if training:
            # Half precision rounds means, and its squares overflow.
            x = tf.cast(inputs, mean.dtype)
            moments = keras.ops.moments(x, list(range(len(x.shape) - 1)), synchronized=True)
            for average, before, moment in zip(averages, (mean, variance), moments, strict=True):
                average.assign(before + (1.0 - self.momentum) * (fixed(moment) - before))
        return inputs + tf.cast(shift, inputs.dtype)
