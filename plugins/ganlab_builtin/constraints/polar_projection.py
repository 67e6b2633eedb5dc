"""Orthonormal kernels by projection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from ganlab.bounds import Ge, Le
from ganlab.functional import as_matrix
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.certified import MatrixKernels

# By the distance from orthonormal, ||W'W - I||. Up to the first, singular values are between 0.866 and 1.12, and within
# 1e-3 of one after two iterations. Up to the second, they are between 0.31 and 1.38, and as close after six.
_NEAR, _CLOSE, _FROM_CLOSE = 0.25, 0.9, 6
# From farther away they are scaled down below one, and grow by half in each: these raise a 300,000th of the largest.
_FROM_FAR = 40


class PolarProjection(MatrixKernels):
    """Replaces every kernel by the orthonormal matrix nearest to it after each update, outside the gradient.

    `W <- W (3 I - W'W) / 2`, an iteration of Newton and Schulz for the polar factor of W: Björck and Bowie, "An
    iterative algorithm for computing the best estimate of an orthogonal matrix" (1971). Kernels were orthonormal before
    the update, so that two iterations suffice: an error e of a singular value becomes `3 e^2 / 2`. A kernel that an
    update moved farther gets six. One that is far from orthonormal, as before the first update, is scaled down to
    singular values below one and gets 40. So all singular values are within 1e-3 of one after every update, except for
    those below a 300,000th of the largest.

    It is what bjorck computes in every forward pass, at the cost of parseval, because nothing is differentiated; up to
    second order in the size of an update, training is gradient descent on orthonormal matrices. A convolution's kernel
    is taken as the matrix (everything else, outputs), and the convolution computes with it over the square root of how
    many patches an input lies in, which bounds it by one. Rows or columns are orthonormal, whichever are fewer.
    """

    def __init__(self, *, iterations: Annotated[int, Ge(1), Le(10_000)] = 2) -> None:
        """Chooses how closely kernels are orthonormal.

        Args:
            iterations: Iterations after an update that was small, of two products of matrices each. With one, it
                costs as much as parseval, and singular values are within 0.03 of one.
        """
        self.iterations = iterations

    def project(self, weights: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The kernels orthonormal."""
        projected = dict(weights)
        for name in self._overlaps:
            projected[name] = tf.reshape(self._orthonormal(as_matrix(weights[name])), weights[name].shape)
        return projected

    def _orthonormal(self, matrix: tf.Tensor) -> tf.Tensor:
        wide = matrix.shape[0] < matrix.shape[1]
        matrix = tf.transpose(matrix) if wide else matrix
        identity = tf.eye(matrix.shape[1])
        gram = tf.matmul(matrix, matrix, transpose_a=True)
        distance = tf.norm(gram - identity)
        count = tf.where(distance > _CLOSE, _FROM_FAR, tf.where(distance > _NEAR, _FROM_CLOSE, 1))
        count = tf.maximum(count, self.iterations)
        # The root of Frobenius' norm of W'W is never below the largest singular value of W.
        scale = tf.where(distance > _CLOSE, tf.maximum(tf.norm(gram), 1e-24), 1.0)
        matrix, gram = matrix / tf.sqrt(scale), gram / scale

        def further(iteration: tf.Tensor, matrix: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            gram = tf.matmul(matrix, matrix, transpose_a=True)
            return iteration + 1, tf.matmul(matrix, 1.5 * identity - 0.5 * gram)

        matrix = tf.matmul(matrix, 1.5 * identity - 0.5 * gram)
        _, matrix = tf.while_loop(lambda iteration, _: iteration < count, further, (1, matrix))
        return tf.transpose(matrix) if wide else matrix
