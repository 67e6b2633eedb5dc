"""Normalizations whose gains and biases depend on class labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from ganlab.functional import moments
from ganlab.layers.base import Layer
from ganlab.layers.labels import class_weights, count_classes, pair


@keras.saving.register_keras_serializable(package="ganlab")
class ConditionalBatchNormalization(keras.layers.BatchNormalization):
    """Batch normalization whose gain and bias are those of the example's label; called on `[x, labels]`.

    De Vries et al., "Modulating early visual processing by language" (2017); Dumoulin, Shlens and Kudlur, "A learned
    representation for artistic style" (2017). Moments are taken over the global batch, all labels together, on every
    replica the same, and moving averages of them outside training, as by
    `keras.layers.BatchNormalization(synchronized=True)`. Gains start at one and biases at zero.
    """

    def __init__(
        self,
        classes: int | None = None,
        axis: int = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        **kwargs: Any,
    ) -> None:
        """Chooses the moments.

        Args:
            classes: How many there are; needed for labels that are numbers.
            axis: The channels' axis.
            momentum: The decay of the moving averages.
            epsilon: Added to the variance.
            **kwargs: Keras' own, for example `name`.
        """
        super().__init__(
            axis=axis, momentum=momentum, epsilon=epsilon, center=False, scale=False, synchronized=True, **kwargs
        )
        self.classes = classes

    def build(self, input_shape: Sequence[Sequence[int | None]]) -> None:
        """Creates gains, biases and moving averages."""
        shape, labels = pair(self, input_shape)
        super().build(shape)
        self.input_spec = None  # of one input, without the labels
        self.gamma, self.beta = _gains(self, shape, labels)

    def call(self, inputs: Sequence[tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """The normalized first input, of its shape."""
        x, labels = inputs
        return _scaled(self, super().call(x, training=training), labels)

    def compute_output_shape(self, input_shape: Sequence[Sequence[int | None]]) -> Sequence[int | None]:
        """The first input's shape."""
        return input_shape[0]

    def get_config(self) -> dict[str, Any]:
        """Keras' configuration."""
        settings = ("classes", "axis", "momentum", "epsilon")
        return {**keras.layers.Layer.get_config(self), **{name: getattr(self, name) for name in settings}}


@keras.saving.register_keras_serializable(package="ganlab")
class ConditionalLayerNormalization(Layer):
    """Normalizes each example over all of its axes, then applies its label's gain and bias; called on `[x, labels]`.

    Ba, Kiros and Hinton, "Layer normalization" (2016), with the gains and biases of conditional batch normalization,
    one for each class and channel. Its second derivatives are right. Computes in float32, or in float64 for float64
    input; returns the layer's compute dtype.
    """

    arguments = "classes axis epsilon"

    def __init__(self, classes: int | None = None, axis: int = -1, epsilon: float = 1e-3, **kwargs: Any) -> None:
        """Chooses the channels' axis.

        Args:
            classes: How many there are; needed for labels that are numbers.
            axis: The channels' axis.
            epsilon: Added to the variance.
            **kwargs: Keras' own, for example `name`.
        """
        super().__init__(**kwargs)
        self.classes, self.axis, self.epsilon = classes, int(axis), float(epsilon)

    def build(self, input_shape: Sequence[Sequence[int | None]]) -> None:
        """Creates gains and biases."""
        self.gamma, self.beta = _gains(self, *pair(self, input_shape))

    def call(self, inputs: Sequence[tf.Tensor]) -> tf.Tensor:
        """The normalized first input, of its shape."""
        x, labels = tf.convert_to_tensor(inputs[0]), inputs[1]
        x = x if x.dtype in (tf.float32, tf.float64) else tf.cast(x, tf.float32)
        mean, variance = moments(x, list(range(1, len(x.shape))))
        y = (x - mean) * tf.math.rsqrt(variance + self.epsilon)
        return tf.cast(_scaled(self, y, labels), self.compute_dtype)

    def compute_output_shape(self, input_shape: Sequence[Sequence[int | None]]) -> Sequence[int | None]:
        """The first input's shape."""
        return input_shape[0]


def _gains(layer: Any, shape: Sequence[int | None], labels: Sequence[int | None]) -> tuple[Any, Any]:
    """A gain and a bias for each class and channel.

    They are vectors, one class after another: a weight with two axes would be a kernel to constraints, which leave
    gains and biases alone.
    """
    channels = shape[layer.axis]
    if channels is None:
        raise ValueError(
            f"ganlab.layers.{type(layer).__name__} got the shape {tuple(shape)}; the length of axis {layer.axis} "
            "must be known."
        )
    length = (count_classes(layer, labels, layer.classes) * int(channels),)
    return (
        layer.add_weight(shape=length, initializer="ones", name="gamma", autocast=False),
        layer.add_weight(shape=length, initializer="zeros", name="beta", autocast=False),
    )


def _scaled(layer: Any, y: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    channels = int(y.shape[layer.axis])
    table = (layer.gamma.shape[0] // channels, channels)
    weights = class_weights(labels, table[0], y.dtype)
    broad = [1] * len(y.shape)
    broad[0], broad[layer.axis] = -1, channels

    def of_label(variable: Any) -> tf.Tensor:
        return tf.reshape(tf.matmul(weights, tf.reshape(tf.cast(variable, y.dtype), table)), broad)

    return y * of_label(layer.gamma) + of_label(layer.beta)
