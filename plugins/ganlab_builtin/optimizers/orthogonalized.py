"""Muon: updates of matrices are orthogonalized. Importing this imports Keras."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from ganlab_builtin.optimizers.fused import Adam

_COEFFICIENTS = 3.4445, -4.7750, 2.0315
_STEPS = 5


@keras.saving.register_keras_serializable(package="ganlab")
class Muon(Adam):
    """Momentum whose matrix is replaced by one with singular values near one; Adam for what is no such matrix.

    As muon.py of KellerJordan/Muon (857d1ad): `zeropower_via_newtonschulz5` in line 5 and `muon_update` in line 34, but
    in float32 where that has bfloat16. Keras' own leaves kernels of convolutions to Adam, and is newer than the oldest
    Keras that ganlab runs on.
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
            None if self._is_matrix(v) else self.add_variable_from_reference(v, name="velocity") for v in variables
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
        step = orthogonalized(tf.reshape(ahead, [-1, variable.shape[-1]]))
        # So that a number's root mean square is that of Adam's steps: Liu et al. (2025), equation 4.
        rate = tf.cast(learning_rate, dtype) * 0.2 * math.sqrt(max(step.shape))
        self.assign(momentum, mean)
        self.assign_sub(variable, rate * tf.reshape(step, variable.shape))

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this optimizer again."""
        return {**super().get_config(), "momentum": self.momentum, "adam_names": self.adam_names}

    def _is_matrix(self, variable: keras.Variable) -> bool:
        named = any(re.search(name, variable.path) for name in self.adam_names)
        return len(variable.shape) > 1 and not named


def orthogonalized(matrix: tf.Tensor) -> tf.Tensor:
    """The matrix with singular values between 0.68 and 1.13, unless they were below a thousandth of its norm.

    Five steps of a polynomial of Newton and Schulz' kind, which raises small singular values fastest.
    """
    tall = matrix.shape[0] > matrix.shape[1]
    x = tf.transpose(matrix) if tall else matrix
    x /= tf.norm(x) + 1e-7
    a, b, c = _COEFFICIENTS
    for _ in range(_STEPS):
        gram = tf.matmul(x, x, transpose_b=True)
        x = a * x + tf.matmul(b * gram + c * tf.matmul(gram, gram), x)
    return tf.transpose(x) if tall else x
