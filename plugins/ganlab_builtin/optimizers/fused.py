"""Adam with its update in one operation. Importing this imports Keras."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="ganlab")
class Adam(keras.optimizers.Adam):
    """Keras' Adam, with one kernel that passes once over a variable and its moments instead of a dozen kernels.

    Kingma and Ba, "Adam: a method for stochastic optimization" (2015), in the order of computation at the end of
    section 2, as in Keras. Variables, config and numbers are those of its base class, but for rounding; with
    `corrected_epsilon` they are those of algorithm 1, as in PyTorch.
    """

    def __init__(self, *args: Any, corrected_epsilon: bool = False, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.corrected_epsilon = corrected_epsilon

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this optimizer again."""
        return {**super().get_config(), "corrected_epsilon": self.corrected_epsilon}

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Updates variables by their gradients; numbers that are the same for all are computed once."""
        self._shared: _Shared | None = _Shared()
        try:
            super().apply(grads, trainable_variables)
        finally:
            self._shared = None  # they are tensors of this graph

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one variable and its two moments."""
        index, dtype = self._get_variable_index(variable), variable.dtype
        shared = getattr(self, "_shared", None) or _Shared()
        key = tf.compat.v1.get_default_graph(), variable.device, dtype
        if key not in shared.numbers:
            shared.numbers[key] = self._numbers(dtype, learning_rate)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            grad=tf.cast(tf.convert_to_tensor(gradient), dtype),
            **shared.numbers[key],
        )

    def _numbers(self, dtype: tf.DType, learning_rate: Any) -> dict[str, tf.Tensor]:
        updates = tf.cast(self.iterations.value, dtype) + 1
        beta_1, beta_2 = tf.cast(self.beta_1, dtype), tf.cast(self.beta_2, dtype)
        power, epsilon = tf.pow(beta_2, updates), tf.cast(self.epsilon, dtype)
        return {
            "beta1_power": tf.pow(beta_1, updates),
            "beta2_power": power,
            "lr": tf.cast(learning_rate, dtype),
            "beta1": beta_1,
            "beta2": beta_2,
            "epsilon": epsilon * tf.sqrt(1 - power) if self.corrected_epsilon else epsilon,
        }


class _Shared:
    """Numbers of one call of `apply`, by graph, device and dtype.

    Made for each variable anew they were a fifth of the operations of a step. An object, because Keras would track a
    dict as a part of the optimizer's state.
    """

    def __init__(self) -> None:
        self.numbers: dict[tuple[tf.Graph, str, tf.DType], dict[str, tf.Tensor]] = {}
