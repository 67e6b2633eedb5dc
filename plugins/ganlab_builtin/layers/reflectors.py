"""Block reflectors: convolutions that reflect at a subspace for each frequency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import ganlab

_RIDGE = 1e-5  # added to the diagonal of V*V, relative to its mean, as in BRONet


@keras.saving.register_keras_serializable(package="ganlab")
class BROConv2D(ganlab.layers.OrthogonalConv2D):
    """A convolution whose matrix at each frequency is the reflection `I - 2 V (V*V)^-1 V*`, of which a part is taken.

    Lai, Huang, Kung and Chen, "Enhancing certified robustness via block reflector orthogonal layers and logit annealing
    loss" (2025), as BRO of ntuaislab/BRONet (9d59c9b, lipconvnet/models/layers/bro.py:97): V is the Fourier transform
    of `kernel`, `(*kernel_size, the wider of inputs and filters, rank)`, on the image. The inverse makes the
    convolution as wide as the image, so it is computed in frequency, for one size of images alone. Here two steps of
    Björck's iteration repair the solution, which is divided by what rounding may add to its norm.

    With `padding="circular"` every singular value is one, but for what fewer filters drop, and for directions in which
    V nearly vanishes. With "same" images are continued by zeros, half a kernel wide, as in BRONet, and no singular
    value is above one.
    """

    arguments = "rank"

    def __init__(
        self, filters: int, kernel_size: int | Sequence[int] = 3, rank: int | None = None, **kwargs: Any
    ) -> None:
        """Sets the sizes.

        Args:
            filters: Channels of the output.
            kernel_size: Height and width of the kernel of V, or one number for both.
            rank: How many columns V has: how many directions are reversed. None for half of the channels where the
                output has as many, and for the fewer of both elsewhere. Of full rank a square matrix would be -I.
            **kwargs: Those of `ganlab.layers.OrthogonalConv2D`.
        """
        super().__init__(filters, kernel_size, **kwargs)
        self.rank = rank

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Creates the weights."""
        inputs = input_shape[-1] or 0
        wider, narrower = max(inputs, self.filters), min(inputs, self.filters)
        rank = (max(1, wider // 2) if wider == narrower else narrower) if self.rank is None else self.rank
        if len(input_shape) != 4 or None in input_shape[1:] or not 1 <= rank <= wider:
            raise ValueError(
                f"ganlab_builtin.layers.BROConv2D(rank={self.rank!r}) got the shape {tuple(input_shape)}; it must be "
                "(n, height, width, channels) of known sizes, and the rank from 1 to the larger number of channels, "
                f"{wider}."
            )
        self._width = inputs
        self._margins = [k // 2 if self.padding == "same" else 0 for k in self.kernel_size]
        self._sides = [(n or 0) + 2 * more for n, more in zip(input_shape[1:3], self._margins, strict=True)]
        self._create((*self.kernel_size, wider, rank))

    def effective_kernel(self) -> tf.Tensor:
        """The matrix at each frequency of the padded image, of real and imaginary parts, of the kernel's dtype.

        `(height, width // 2 + 1, 2 inputs, 2 filters)`, by which rows are multiplied.
        """
        kernel, (rows, columns) = tf.convert_to_tensor(self.kernel), self._sides
        wider = kernel.shape[2]
        taps = np.indices(self.kernel_size).reshape(2, -1)
        frequencies = np.indices((rows, columns // 2 + 1)).reshape(2, -1) / [[rows], [columns]]
        flat, angles = tf.reshape(kernel, [len(taps[0]), -1]), 2 * np.pi * frequencies.T @ taps
        real, imaginary = (
            tf.reshape(tf.matmul(tf.constant(wave(angles), kernel.dtype), flat), [-1, wider, kernel.shape[3]])
            for wave in (np.cos, np.sin)
        )
        # Complex matrices, of this real part and less this imaginary part, as real ones of twice the size.
        doubled = tf.concat([tf.concat([real, -imaginary], 1), tf.concat([imaginary, real], 1)], 2)
        parts = tf.reshape(_reflection(doubled), [rows, -1, 2, wider, 2, wider])
        parts = parts[..., : self._width, :, : self.filters]
        return tf.reshape(parts, [rows, -1, 2 * self._width, 2 * self.filters])

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The feature maps, `(n, height, width, filters)`."""
        matrices, (above, left), sides = self.effective_kernel(), self._margins, self._sides
        x = tf.pad(tf.cast(inputs, matrices.dtype), [[0, 0], [above, above], [left, left], [0, 0]])
        x = tf.signal.rfft2d(tf.transpose(x, [0, 3, 1, 2]), sides)
        x = tf.transpose(tf.concat([tf.math.real(x), tf.math.imag(x)], 1), [2, 3, 0, 1])
        y = tf.complex(*tf.split(tf.transpose(tf.matmul(x, matrices), [2, 3, 0, 1]), 2, 1))
        y = tf.transpose(tf.signal.irfft2d(y, sides), [0, 2, 3, 1])
        return self._with_bias(tf.cast(y[:, above : sides[0] - above, left : sides[1] - left], inputs.dtype))


def _reflection(columns: tf.Tensor) -> tf.Tensor:
    """`I - 2 V (V'V)^-1 V'` of matrices V, `(..., n, rank)`, of a norm of at most one: symmetric, `(..., n, n)`."""
    size, rank = columns.shape[-2:]
    gram = tf.matmul(columns, columns, transpose_a=True)
    mean = tf.reduce_mean(tf.linalg.diag_part(gram), -1)[..., None, None]
    root = tf.linalg.cholesky(gram + (_RIDGE * mean + 1e-30) * tf.eye(rank, dtype=columns.dtype))
    basis = tf.linalg.matrix_transpose(tf.linalg.triangular_solve(root, tf.linalg.matrix_transpose(columns)))
    for _ in range(2):  # Björck's iteration, after which no singular value is above one but by rounding
        basis = 1.5 * basis - 0.5 * tf.matmul(basis, tf.matmul(basis, basis, transpose_a=True))
    reflection = tf.eye(size, dtype=columns.dtype) - 2.0 * tf.matmul(basis, basis, transpose_b=True)
    return reflection / (1.0 + (4 * size + 64) * np.finfo(columns.dtype.as_numpy_dtype).eps)
