"""Orthonormal kernels by Björck's iteration."""

from __future__ import annotations

from typing import Annotated

from ganlab.bounds import Ge, Le
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.orthonormal_kernels import OrthonormalKernels


class Bjorck(OrthonormalKernels):
    """Replaces every kernel by the orthonormal matrix nearest to it, so that no layer stretches or shrinks.

    Anil, Lucas and Grosse, "Sorting out Lipschitz function approximation" (2019), section 4, by the iteration of Björck
    and Bowie, "An iterative algorithm for computing the best estimate of an orthogonal matrix" (1971):
    `A <- A (I + Q / 2 + 3 Q^2 / 8 + ...)` with `Q = I - A'A`, as many terms as `order`. Rows or columns become
    orthonormal, whichever are fewer. The kernel is first divided by `||A'A||^(1/2)`, Frobenius' norm, which is never
    below its largest singular value: from there singular values rise to one and never above it, however few iterations
    there are.

    A convolution's kernel is taken as the matrix (everything else, outputs) and then divided by the square root of how
    many patches an input lies in (9 for a 3x3 kernel at stride 1, 4 for a 4x4 one at stride 2), which bounds the
    convolution by one. So every kernel's map is 1-Lipschitz, and with 1-Lipschitz activations, for example
    `architectures.mlp.activation = "max_min"`, so is a critic without branches, as the logged lipschitz_bound shows.
    """

    def __init__(
        self, *, iterations: Annotated[int, Ge(1), Le(10_000)] = 15, order: Annotated[int, Ge(1), Le(100)] = 1
    ) -> None:
        """Chooses how closely kernels are orthonormal.

        Args:
            iterations: Iterations in every forward pass. Each is differentiated, and costs two products of the kernel
                with itself.
            order: Terms of the series in each iteration; more take fewer iterations.
        """
        self.iterations, self.order = iterations, order

    def orthonormal(self, matrix: tf.Tensor) -> tf.Tensor:
        """The orthonormal matrix nearest to this one."""
        # Over the largest entry first, because fourth powers of small weights vanish in float32.
        matrix = matrix / tf.maximum(tf.reduce_max(tf.abs(matrix)), 1e-12)
        gram = tf.matmul(matrix, matrix, transpose_a=True)
        matrix = matrix / tf.sqrt(tf.sqrt(tf.reduce_sum(tf.square(gram)) + 1e-12))
        identity = tf.eye(matrix.shape[1])
        for _ in range(self.iterations):
            rest = identity - tf.matmul(matrix, matrix, transpose_a=True)
            series = identity
            for term in range(self.order, 0, -1):
                series = identity + (2 * term - 1) / (2 * term) * tf.matmul(rest, series)
            matrix = tf.matmul(matrix, series)
        return matrix
