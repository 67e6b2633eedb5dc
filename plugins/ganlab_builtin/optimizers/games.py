"""Optimizers for games, in which descent by each player alone circles. Importing this imports Keras."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="ganlab")
class Extragradient(keras.optimizers.SGD):
    """Gradient descent whose gradient is taken a step of gradient descent ahead."""

    def look_ahead(self, gradients: Sequence[tf.Tensor], weights: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The weights after a step of gradient descent."""
        rate = tf.cast(self.learning_rate, tf.float32)
        return [weight - rate * gradient for weight, gradient in zip(weights, gradients, strict=True)]


@keras.saving.register_keras_serializable(package="ganlab")
class OptimisticAdam(keras.optimizers.Adam):
    """Adam that makes every step twice and takes the step before it back."""

    def build(self, variables: Sequence[keras.Variable]) -> None:
        """Makes the moments, and the last step of each variable."""
        built = self.built
        super().build(variables)
        if not built:
            self._last = self.add_optimizer_variables(variables, "last_step")

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one variable, its moments and its last step."""
        index, dtype = self._get_variable_index(variable), variable.dtype
        gradient, rate = tf.cast(gradient, dtype), tf.cast(learning_rate, dtype)
        updates = tf.cast(self.iterations.value, dtype) + 1
        beta_1, beta_2 = tf.cast(self.beta_1, dtype), tf.cast(self.beta_2, dtype)
        first, second, last = self._momentums[index], self._velocities[index], self._last[index]
        m = first + (gradient - first) * (1 - beta_1)
        v = second + (tf.square(gradient) - second) * (1 - beta_2)
        mean, square = m / (1 - tf.pow(beta_1, updates)), v / (1 - tf.pow(beta_2, updates))
        step = rate * mean / (tf.sqrt(square) + tf.cast(self.epsilon, dtype))
        self.assign_sub(variable, 2.0 * step - last)
        for kept, value in ((first, m), (second, v), (last, step)):
            self.assign(kept, value)
