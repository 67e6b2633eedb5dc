"""Stable rank normalization."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated

from ganlab.bounds import Ge, Gt, Le
from ganlab.functional import as_matrix, fixed
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.spectral_norm import SpectralNorm


class StableRank(SpectralNorm):
    """Gives every kernel a largest singular value of one and a limited stable rank, the sum of squares of all of them.

    Sanyal, Torr and Dokania, "Stable rank normalization for improved generalization in neural networks and GANs"
    (2020), theorem 1 with one singular value preserved: `W / sigma = S_1 + S_2`, where `S_1 = u v'` is
    its leading part, becomes `S_1 + gamma S_2` with `gamma = min(1, sqrt(r - 1) / |S_2|)`, Frobenius' norm. This is the
    matrix nearest to it of stable rank r or less, here `rank * min(rows, columns)` and at least one. Its spectral norm
    is not changed.

    Singular vectors are followed by power iteration and carry no gradient, as under spectral_norm; a convolution's
    kernel is taken as the matrix (everything else, outputs), as in the paper.
    """

    def __init__(
        self,
        *,
        rank: Annotated[float, Gt(0), Le(1)] = 0.7,
        power_iterations: Annotated[int, Ge(1), Le(10_000)] = 1,
    ) -> None:
        """Chooses the stable rank.

        Args:
            rank: The largest stable rank, over the smaller side of the matrix; the paper's c.
            power_iterations: Power iterations per critic update.
        """
        super().__init__(power_iterations=power_iterations)
        self.rank = rank

    def reparameterize(self, weights: Mapping[str, tf.Tensor], state: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Every kernel over its estimated largest singular value, its other singular values scaled down."""
        normalized = super().reparameterize(weights, state)
        for name in self._operators:
            matrix = as_matrix(normalized[name])
            right = fixed(state[name])[:, None]
            # W v v', whatever v: the leading part if v is the singular vector, and never a reason to stretch if not.
            leading = tf.matmul(tf.matmul(matrix, right), right, transpose_b=True)
            rest = matrix - leading
            allowed = max(self.rank * min(matrix.shape) - 1.0, 0.0)
            ratio = math.sqrt(allowed) * tf.math.rsqrt(tf.reduce_sum(tf.square(rest)) + 1e-12)
            normalized[name] = tf.reshape(leading + tf.minimum(ratio, 1.0) * rest, weights[name].shape)
        return normalized
