"""The sandwich layer: a nonlinear dense layer of Lipschitz constant one, whatever the weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from ganlab import functional
from ganlab.layers.almost_orthogonal import known_channels
from ganlab.layers.base import Layer
from ganlab.layers.sll import MARGIN

# Those of keras.activations that act on single numbers, with slopes between zero and one.
ACTIVATIONS = (
    *("linear", "relu", "relu6", "leaky_relu", "elu", "softplus"),
    *("softsign", "sigmoid", "log_sigmoid", "tanh", "hard_sigmoid", "hard_tanh"),
)


@keras.saving.register_keras_serializable(package="ganlab")
class SandwichDense(Layer):
    """A dense layer of constant one with its activation: `sqrt(2) A' Psi s(sqrt(2) Psi^-1 B x + b)`.

    Wang and Manchester, "Direct parameterization of Lipschitz-bounded deep networks" (2023): Psi is diagonal and
    positive, the slopes of s are between zero and one, and `A A' + B B' = I`. Then the Jacobian is `2 A' D B` with a
    diagonal D between zero and one. Its norm is largest where D is a projection, and there
    `4 (A u)' D (B v) <= |A u + B v|^2 <= |u|^2 + |v|^2`.

    A and B are made of free matrices X and Y by the Cayley transform, `A' = (I - Z) (I + Z)^-1` and
    `B' = -2 Y (I + Z)^-1` with `Z = X - X' + Y'Y`. X is `skew`, `(units, units)`; Y is `kernel`, `(inputs, units)`; and
    `log_psi` is the logarithm of Psi's diagonal. Takes `(n, ..., inputs)` and returns `(n, ..., units)`.
    """

    arguments = "units activation kernel_initializer bias_initializer"
    lipschitz_constant = 1.0

    def __init__(
        self,
        units: int,
        activation: Any = "relu",
        kernel_initializer: Any = None,
        bias_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        """Sets the size.

        Args:
            units: The length of the output.
            activation: One of `ACTIVATIONS`, by name or as a function of Keras.
            kernel_initializer: How the kernel starts; None for an orthogonal matrix of such a size that sqrt(2) A is
                the identity and sqrt(2) B orthogonal, where there are no more units than inputs.
            bias_initializer: How the bias starts.
            **kwargs: Keras' own, for example `name`.
        """
        super().__init__(**kwargs)
        if not isinstance(units, int) or units < 1:
            raise ValueError(f"ganlab.layers.SandwichDense(units={units!r}): it must be at least 1.")
        self.units, self.activation = units, keras.activations.get(activation)
        if not any(self.activation is getattr(keras.activations, name) for name in ACTIVATIONS):
            raise ValueError(
                f"ganlab.layers.SandwichDense(activation={activation!r}): its slopes must be known to be between zero "
                f"and one; take one of {', '.join(ACTIVATIONS)}."
            )
        self.kernel_initializer = keras.initializers.get(
            kernel_initializer or keras.initializers.Orthogonal(gain=math.sqrt(2) - 1)
        )
        self.bias_initializer = keras.initializers.get(bias_initializer)

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Creates the weights."""
        shape = (known_channels(self, input_shape), self.units)
        # In float32 under any precision, like the equations solved with them.
        self.kernel = self.add_weight(shape=shape, initializer=self.kernel_initializer, name="kernel", autocast=False)
        self.skew = self.add_weight(shape=(self.units,) * 2, initializer="zeros", name="skew", autocast=False)
        self.log_psi = self.add_weight(shape=(self.units,), initializer="zeros", name="log_psi", autocast=False)
        self.bias = self.add_weight(shape=(self.units,), initializer=self.bias_initializer, name="bias")

    def factors(self) -> tuple[tf.Tensor, tf.Tensor]:
        """The matrices A, `(units, units)`, and B, `(units, inputs)`, in float32 or float64.

        Both are divided by the square root of one plus what rounding leaves of `A A' + B B' - I`, and a margin, so
        that the constant holds for what is computed. Rounding matters only where Y is large and has more units than
        inputs.
        """
        kernel, skew = tf.convert_to_tensor(self.kernel), tf.convert_to_tensor(self.skew)
        # One matrix [A B], with orthonormal rows but for rounding, most of which a step of Newton and Schulz repairs.
        matrix = tf.transpose(functional.cayley(tf.concat([skew, kernel], 0)))
        matrix = 1.5 * matrix - 0.5 * tf.matmul(tf.matmul(matrix, matrix, transpose_b=True), matrix)
        deviation = tf.abs(tf.matmul(matrix, matrix, transpose_b=True) - tf.eye(self.units, dtype=matrix.dtype))
        # Without a gradient: if nothing were rounded, it would be zero for all weights.
        excess = functional.fixed(tf.reduce_max(tf.reduce_sum(deviation, 1)))
        matrix *= tf.math.rsqrt((1 + excess) * MARGIN)
        return matrix[:, : self.units], matrix[:, self.units :]

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The output, `(n, ..., units)`."""
        a, b = self.factors()
        psi = tf.exp(tf.convert_to_tensor(self.log_psi))
        inward = tf.cast(math.sqrt(2) * tf.transpose(b) / psi, inputs.dtype)
        outward = tf.cast(math.sqrt(2) * psi[:, None] * a, inputs.dtype)
        hidden = self.activation(keras.ops.matmul(inputs, inward) + self.bias)
        return keras.ops.matmul(hidden, outward)

    def compute_output_shape(self, input_shape: Sequence[int | None]) -> Sequence[int | None]:
        """The input's shape with `units` for its last axis."""
        return (*input_shape[:-1], self.units)
