"""Convex potential layers: residual layers of Lipschitz constant one, each divided by a bound of its kernel's norm."""

from __future__ import annotations

import keras
import tensorflow as tf

from ganlab.functional import squared_norm_bound
from ganlab.layers.sll import MARGIN, TINY, SLLConv2D, SLLDense


class _Potential(keras.layers.Layer):
    """T is a multiple of the identity, the squared norm, and q is absent."""

    def _add_weights(self, shape: tuple[int, ...]) -> None:
        self.kernel = self.add_weight(shape=shape, initializer=self.kernel_initializer, name="kernel", autocast=False)
        self.bias = self.add_weight(shape=shape[-1:], initializer=self.bias_initializer, name="bias")

    def _factors(self, kernel: tf.Tensor) -> tf.Tensor:
        return 2.0 / (squared_norm_bound(kernel) * MARGIN + TINY)


@keras.saving.register_keras_serializable(package="ganlab")
class CPLDense(_Potential, SLLDense):
    """A residual layer of constant one on vectors: `x - 2 / |W|^2 W relu(W'x + b)`, the step of a convex potential.

    Meunier, Delattre, Araujo and Allauzen, "A dynamical system perspective for Lipschitz neural networks" (2022),
    equation 10. The paper estimates the norm by power iteration, from below; here it is bounded from above by six Gram
    iterations (`squared_norm_bound`), so that the constant holds at every moment. It is `SLLDense` with one number for
    T, and has its parameters: `kernel`, `(inputs, units)`, and `bias`. Takes `(n, ..., inputs)` and returns the same
    shape.
    """


@keras.saving.register_keras_serializable(package="ganlab")
class CPLConv2D(_Potential, SLLConv2D):
    """A residual layer of constant one on images: `x - 2 / |W|^2 W relu(W'x + b)`.

    As `CPLDense`, with the convolution of `SLLConv2D`. Its norm is bounded in frequency, for images of any size.
    """
