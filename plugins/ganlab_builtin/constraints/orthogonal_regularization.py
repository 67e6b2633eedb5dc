"""Orthogonal regularization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from ganlab.bounds import Ge
from ganlab.functional import as_matrix
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.certified import Certified


class OrthogonalRegularization(Certified):
    """Penalizes outputs of a layer that point in the same direction.

    Brock, Donahue and Simonyan, "Large scale GAN training for high fidelity natural image synthesis" (2019), section
    3.1: `weight * ||W'W * (1 - I)||^2`, Frobenius' norm, summed over kernels W taken as matrices (everything else,
    outputs). Only the products of different columns cost anything, so that norms stay free. `off_diagonal = False` is
    `weight * ||W'W - I||^2`, after Brock, Lim, Ritchie and Weston, "Neural photo editing with introspective adversarial
    networks" (2017), which also requires columns of length one, and cannot reach that with more outputs than inputs.
    """

    def __init__(self, *, weight: Annotated[float, Ge(0)] = 1e-4, off_diagonal: bool = True) -> None:
        """Chooses the penalty.

        Args:
            weight: The penalty's factor; the later paper's 1e-4.
            off_diagonal: Whether lengths of columns cost nothing.
        """
        self.weight, self.off_diagonal = weight, off_diagonal

    def weight_penalty(self, weights: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The penalty, a scalar."""
        total = tf.zeros([])
        for weight in weights.values():
            if len(weight.shape) < 2:
                continue
            matrix = as_matrix(weight)
            gram = tf.matmul(matrix, matrix, transpose_a=True)
            rest = gram - (tf.linalg.diag(tf.linalg.diag_part(gram)) if self.off_diagonal else tf.eye(gram.shape[0]))
            total += tf.reduce_sum(tf.square(rest))
        return self.weight * total
