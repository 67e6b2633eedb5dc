"""Parseval tightening."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge, Le
from ganlab.functional import as_matrix
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.certified import MatrixKernels


class Parseval(MatrixKernels):
    """Moves every kernel a step towards an orthonormal matrix after each update.

    Cisse, Bojanowski, Grave, Dauphin and Usunier, "Parseval networks: improving robustness to adversarial examples"
    (2017), algorithm 1: `W <- (1 + beta) W - beta W W'W`, a step of gradient descent on `beta / 4 * ||W'W - I||^2` that
    brings all singular values below `sqrt(2 / beta)` to one in time. All rows are taken, where the paper samples some.
    A convolution's kernel is taken as the matrix (everything else, outputs), and the convolution computes with it over
    the square root of how many patches an input lies in, as in the paper: it is 1-Lipschitz where the matrix is.

    Kernels stay near orthonormal only where updates are small beside the step; the logged lipschitz_bound says how
    near. The paper's convex weights for adding branches up are left to the architecture.

    Logs `distance`, the largest over kernels of `||W'W - I||`, Frobenius' norm, by the side of W that is shorter.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "distance": (
            "How far the kernels are from having orthonormal rows or columns: the largest ||W'W - I|| over "
            "kernels, before a step of the retraction. Near 0 each layer keeps lengths."
        ),
    }

    def __init__(self, *, beta: Annotated[float, Ge(0), Le(0.5)] = 0.0003) -> None:
        """Chooses the step.

        Args:
            beta: The step's size, at most 0.5; the paper's 0.0003 for its residual networks, which started orthonormal.
                Critics that start differently or learn faster need a larger one.
        """
        self.beta = beta

    def advance(
        self,
        weights: Mapping[str, tf.Tensor],
        state: Mapping[str, tf.Tensor],
        batch: ganlab.Batch,
        replica: ganlab.Replica,
    ) -> Mapping[str, tf.Tensor]:
        """Changes nothing; logs how far kernels are from orthonormal."""
        distances = []
        for name in self._overlaps:
            matrix = as_matrix(weights[name])
            gram = tf.matmul(matrix, matrix, transpose_a=_is_tall(matrix), transpose_b=not _is_tall(matrix))
            distances.append(tf.norm(gram - tf.eye(gram.shape[0])))
        replica.log("distance", tf.stack(distances), reduce="max")
        return state

    def project(self, weights: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The kernels a step nearer to orthonormal."""
        tightened = dict(weights)
        for name in self._overlaps:
            matrix = as_matrix(weights[name])
            if _is_tall(matrix):
                cube = tf.matmul(matrix, tf.matmul(matrix, matrix, transpose_a=True))
            else:
                cube = tf.matmul(tf.matmul(matrix, matrix, transpose_b=True), matrix)
            tightened[name] = tf.reshape((1 + self.beta) * matrix - self.beta * cube, weights[name].shape)
        return tightened


def _is_tall(matrix: tf.Tensor) -> bool:
    return matrix.shape[0] >= matrix.shape[1]
