"""An activation that reflects pairs of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from ganlab.layers.base import Layer


@keras.saving.register_keras_serializable(package="ganlab")
class HouseholderActivation(Layer):
    """Reflects each pair of neighbours on the last axis onto one side of a line through zero, whose angle is trained.

    Singla, Singla and Feizi, "Improved deterministic l2 robustness on CIFAR-10 and CIFAR-100" (2022), definition 1: a
    pair `(a, b)` stays where `a sin(t/2) >= b cos(t/2)`; elsewhere it becomes `(a cos t + b sin t, a sin t - b cos t)`.
    Each pair has its own angle t (`angle`), which starts at pi / 2: the larger number first, the smaller second. The
    activation keeps norms of gradients, as `GroupSort` does.
    """

    arguments = "angle_initializer"
    lipschitz_constant = 1.0  # identity and reflection, which agree on the line between them

    def __init__(self, angle_initializer: Any = None, **kwargs: Any) -> None:
        """Args: angle_initializer: How the angles start, None for pi / 2; kwargs: Keras' own, for example `name`."""
        super().__init__(**kwargs)
        start = keras.initializers.Constant(math.pi / 2) if angle_initializer is None else None
        self.angle_initializer = start or keras.initializers.get(angle_initializer)

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Creates the angles.

        Raises:
            ValueError: The last axis has no even length.
        """
        length = input_shape[-1]
        if not length or length % 2:
            raise ValueError(
                f"ganlab.layers.HouseholderActivation got the shape {tuple(input_shape)}; its last axis must have an "
                "even length, because numbers are taken in pairs. Choose another width."
            )
        self.angle = self.add_weight(
            shape=(length // 2,), initializer=self.angle_initializer, name="angle", autocast=False
        )

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The pairs on their side of the line, of the input's shape."""
        pairs = tf.reshape(inputs, [-1, *inputs.shape[1:-1], inputs.shape[-1] // 2, 2])
        first, second = tf.unstack(pairs, axis=-1)
        angle = tf.convert_to_tensor(self.angle)
        cosine, sine, half_cosine, half_sine = (
            tf.cast(wave, inputs.dtype) for wave in (tf.cos(angle), tf.sin(angle), tf.cos(angle / 2), tf.sin(angle / 2))
        )
        stays = first * half_sine >= second * half_cosine
        reflected = first * cosine + second * sine, first * sine - second * cosine
        sides = [tf.where(stays, a, b) for a, b in zip((first, second), reflected, strict=True)]
        return tf.reshape(tf.stack(sides, axis=-1), tf.shape(inputs))
