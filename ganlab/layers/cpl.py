"""Convex potential layers: residual layers of Lipschitz constant one, each divided by a bound of its kernel's norm."""

from __future__ import annotations

import itertools
import math

import keras
import numpy as np
import tensorflow as tf

from ganlab.layers.sll import MARGIN, TINY, SLLConv2D, SLLDense

_ITERATIONS = 6  # the bound is at most rank^(1 / 128) times the norm
_DENSITY = 6  # frequencies for each tap but the first


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


def squared_norm_bound(kernel: tf.Tensor) -> tf.Tensor:
    """An upper bound of the squared norm of a dense kernel's or a convolution's map, by Gram iteration.

    Delattre, Barthélemy, Araujo and Allauzen, "Efficient bound of Lipschitz constant for convolutional layers by Gram
    iteration" (2023), theorem 2: `|(A'A)^(2^k)|^(2^-k)` in Frobenius' norm, at every step above the largest eigenvalue.
    A convolution with any zero padding is a part of that along infinite axes, whose matrix at a frequency w is
    `sum_t K_t exp(-i w t)`. Between the sampled frequencies the norm is higher by a factor of at most
    `1 / cos(pi (taps - 1) / (2 samples))` for each axis, by which the bound is raised.

    Args:
        kernel: `(inputs, outputs)` or `(*taps, inputs, outputs)` at stride 1, float32 or float64.

    Returns:
        The bound, a scalar, differentiable.
    """
    *taps, inputs, outputs = kernel.shape
    samples = [max(1, _DENSITY * (length - 1)) for length in taps]
    # Frequencies w and -w have conjugate matrices.
    counts = [range(n if axis else n // 2 + 1) for axis, n in enumerate(samples)]
    angles = np.array(
        [
            [
                sum(2 * math.pi * f * t / n for f, t, n in zip(frequency, tap, samples, strict=True))
                for tap in itertools.product(*map(range, taps))
            ]
            for frequency in itertools.product(*counts)
        ]
    )
    flat = tf.reshape(kernel, [-1, inputs * outputs])
    real, imaginary = (
        tf.reshape(tf.matmul(tf.constant(wave(angles), kernel.dtype), flat), [-1, inputs, outputs])
        for wave in (np.cos, np.sin)
    )
    # Complex matrices as real ones of twice the size, which have every singular value twice.
    matrices = tf.concat([tf.concat([real, -imaginary], 2), tf.concat([imaginary, real], 2)], 1)
    gram = tf.matmul(matrices, matrices, transpose_a=outputs <= inputs, transpose_b=outputs > inputs)
    logarithm = tf.zeros([len(angles)], kernel.dtype)
    for step in range(_ITERATIONS + 1):
        size = tf.sqrt(tf.reduce_sum(tf.square(gram), [1, 2]) / 2 + TINY**2)
        logarithm += tf.math.log(size) / 2**step
        if step < _ITERATIONS:
            gram /= size[:, None, None]
            gram = tf.matmul(gram, gram)
    cosines = (math.cos(math.pi * (t - 1) / (2 * n)) for t, n in zip(taps, samples, strict=True))
    return tf.exp(tf.reduce_max(logarithm)) / math.prod(cosines) ** 2
