"""Muon: updates of matrices are orthogonalized. Importing this imports Keras."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from ganlab_builtin.optimizers.fused import Adam


@keras.saving.register_keras_serializable(package="ganlab")
class Muon(Adam):
    """Momentum whose matrix is replaced by one with singular values near one; Adam for what is no such matrix.

    As `muon_update` of KellerJordan/Muon (857d1ad, muon.py:34), in float32 where that has bfloat16. Keras' own leaves
    kernels of convolutions to Adam, and is newer than the oldest Keras that ganlab runs on.
    """

    def __init__(self, *args: Any, momentum: float = 0.95, adam_names: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.momentum, self.adam_names = momentum, list(adam_names)

    def build(self, variables: Sequence[keras.Variable]) -> None:
        """Makes a momentum for each variable, and a velocity for those that Adam updates."""
        if self.built:
            return
        keras.optimizers.Optimizer.build(self, variables)
        self._momentums = [self.add_variable_from_reference(v, name="momentum") for v in variables]
        self._velocities = [
            self.add_variable_from_reference(v, name="velocity")
            if len(v.shape) < 2 or any(re.search(name, v.path) for name in self.adam_names)
            else None
            for v in variables
        ]

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one variable and its momentum, or its two moments."""
        index = self._get_variable_index(variable)
        if self._velocities[index] is not None:
            super().update_step(gradient, variable, learning_rate)
            return
        momentum, dtype = self._momentums[index], variable.dtype
        gradient, decay = tf.cast(gradient, dtype), tf.cast(self.momentum, dtype)
        mean = momentum + (1 - decay) * (gradient - momentum)
        ahead = gradient + decay * (mean - gradient)  # Nesterov's
        step = _orthogonalized(tf.reshape(ahead, [-1, variable.shape[-1]]))
        # So that a number's root mean square is that of Adam's steps: Liu et al. (2025), equation 4.
        rate = tf.cast(learning_rate, dtype) * 0.2 * math.sqrt(max(step.shape))
        self.assign(momentum, mean)
        self.assign_sub(variable, rate * tf.reshape(step, variable.shape))

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this optimizer again."""
        return {**super().get_config(), "momentum": self.momentum, "adam_names": self.adam_names}


def _orthogonalized(matrix: tf.Tensor) -> tf.Tensor:
    """Raises singular values to nearly one: `zeropower_via_newtonschulz5` of muon.py, line 5."""
    wide = matrix.shape[0] <= matrix.shape[1]
    x = matrix / (tf.norm(matrix) + 1e-7)
    for _ in range(5):
        gram = tf.matmul(x, x, transpose_a=not wide, transpose_b=wide)
        polynomial = -4.7750 * gram + 2.0315 * tf.matmul(gram, gram)
        x = 3.4445 * x + (tf.matmul(polynomial, x) if wide else tf.matmul(x, polynomial))
    return x
