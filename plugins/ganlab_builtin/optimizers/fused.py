"""Adam with its update in one operation. Importing this imports Keras."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="ganlab")
class Adam(keras.optimizers.Adam):
    """Keras' Adam, with one kernel that passes once over a variable and its moments instead of a dozen kernels.

    Kingma and Ba, "Adam: a method for stochastic optimization" (2015), in the order of computation at the end of
    section 2, as in Keras. Variables, config and numbers are those of its base class, but for rounding.
    """

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one variable and its two moments."""
        index, dtype = self._get_variable_index(variable), variable.dtype
        updates = tf.cast(self.iterations.value, dtype) + 1
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=tf.pow(tf.cast(self.beta_1, dtype), updates),
            beta2_power=tf.pow(tf.cast(self.beta_2, dtype), updates),
            lr=tf.cast(learning_rate, dtype),
            beta1=tf.cast(self.beta_1, dtype),
            beta2=tf.cast(self.beta_2, dtype),
            epsilon=tf.cast(self.epsilon, dtype),
            grad=tf.cast(tf.convert_to_tensor(gradient), dtype),
        )
