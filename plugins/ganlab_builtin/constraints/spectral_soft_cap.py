"""Soft caps on singular values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np

from ganlab.bounds import Gt, Le
from ganlab.functional import as_matrix
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.certified import MatrixKernels


class SpectralSoftCap(MatrixKernels):
    """Pulls large singular values of every kernel down after each update, and leaves small ones nearly alone.

    Newhouse, Hess, Cesista, Zahorodnii, Bernstein and Isola, "Training transformers with enforced Lipschitz constants"
    (2025), spectral soft cap: the odd polynomials `s - a s^3` and then `s + a s^3` on all singular values at once, as
    `W (I - a W'W)` and again, which is `s - 3 a^2 s^5 + 3 a^3 s^7 - a^4 s^9`. The strength a is the smallest for which
    values grown from the limit by one `step` come back to the limit. So they never exceed it if updates are no longer,
    in spectral norm, than the step; the paper's optimizer ensures that, and Adam does not. After longer updates, and
    from a steeper start, they fall to the limit in some updates. What holds is the logged lipschitz_bound.

    A convolution's kernel is taken as the matrix (everything else, outputs), and the convolution computes with it over
    the square root of how many patches an input lies in.
    """

    def __init__(self, *, limit: Annotated[float, Gt(0)] = 1.0, step: Annotated[float, Gt(0), Le(0.2)] = 0.01) -> None:
        """Chooses the limit.

        Args:
            limit: The largest singular value that a kernel should have.
            step: How far above the limit an update may lift singular values, as a part of the limit. Larger ones pull
                all kernels down more.
        """
        self.limit, self.step = limit, step
        self._strength = strength(step)

    def project(self, weights: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The kernels with their large singular values pulled down."""
        capped = dict(weights)
        for name in self._overlaps:
            matrix = self._capped(as_matrix(weights[name]) / self.limit) * self.limit
            capped[name] = tf.reshape(matrix, weights[name].shape)
        return capped

    def _capped(self, matrix: tf.Tensor) -> tf.Tensor:
        wide = matrix.shape[0] < matrix.shape[1]
        gram = tf.matmul(matrix, matrix, transpose_a=not wide, transpose_b=wide)
        # Beyond 1 / sqrt(a) the polynomial turns and then diverges. The largest sum of a row bounds the squares.
        largest = tf.reduce_max(tf.reduce_sum(tf.abs(gram), axis=1))
        matrix = matrix / tf.sqrt(tf.maximum(self._strength * largest, 1.0))
        for sign in (-1.0, 1.0):
            gram = tf.matmul(matrix, matrix, transpose_a=not wide, transpose_b=wide)
            cube = tf.matmul(gram, matrix) if wide else tf.matmul(matrix, gram)
            matrix = matrix + sign * self._strength * cube
        return matrix


def strength(step: float) -> float:
    """The smallest strength at which the polynomial takes 1 + step to one."""
    start = 1.0 + step
    # With y = a start^2 the polynomial is start (1 - 3 y^2 + 3 y^3 - y^4), which falls from start to zero on [0, 1].
    roots = np.roots([-start, 3 * start, -3 * start, 0.0, step])
    between = roots.real[(np.abs(roots.imag) < 1e-9) & (roots.real > 0) & (roots.real < 1)]
    return float(between.min()) / start**2
