"""Orthonormal kernels by Cayley's transform."""

from __future__ import annotations

from ganlab import functional
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.orthonormal_kernels import OrthonormalKernels


class Cayley(OrthonormalKernels):
    """Makes every kernel orthonormal by Cayley's transform, in one step and exactly.

    Trockman and Kolter, "Orthogonalizing convolutional layers with the Cayley transform" (2021), section 4 and, for
    kernels that are not square, appendix: with `A = U - U' + V'V`, where U are the first n rows of an m x n kernel and
    V the others, `[(I + A)^-1 (I - A); -2 V (I + A)^-1]`. Rows or columns become orthonormal, whichever are fewer.

    The paper transforms convolutions in frequency, which suits circular padding. Here a convolution's kernel is taken
    as the matrix (everything else, outputs) and divided by the square root of how many patches an input lies in, which
    bounds the convolution by one. So every kernel's map is 1-Lipschitz. Square kernels have determinant 1 and
    no eigenvalue -1, which are the limits of the transform.
    """

    def orthonormal(self, matrix: tf.Tensor) -> tf.Tensor:
        """Cayley's transform of the matrix."""
        return functional.cayley(matrix)
