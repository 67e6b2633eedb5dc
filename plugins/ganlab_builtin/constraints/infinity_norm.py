"""Kernels that are 1-Lipschitz in the maximum norm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from ganlab import lipschitz
from ganlab.bounds import Gt
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.certified import KernelMaps
from ganlab_builtin.constraints.convolution_blocks import blocks, joined


class InfinityNorm(KernelMaps):
    """Projects the weights of every output unit onto absolute values whose sum is at most `limit`, after each update.

    Anil, Lucas and Grosse, "Sorting out Lipschitz function approximation" (2019), section 4.2: a layer stretches
    distances in the maximum norm by the largest sum of absolute weights of a unit, so that a critic of such layers, and
    of activations that are 1-Lipschitz in that norm, moves by no more than the largest change of an input. Rectifiers
    and sorting are. That norm is never above the Euclidean one, so a limit of one makes every critic without branches
    1-Lipschitz in the Euclidean norm, too; the logged lipschitz_bound is Euclidean layer by layer, and far above it.

    The projection is the nearest point of the ball, by sorting: Duchi, Shalev-Shwartz, Singer and Chandra, "Efficient
    projections onto the l1-ball for learning in high dimensions" (2008), figure 1. It makes kernels sparse. A unit of a
    convolution sums over its taps and inputs; one of a transposed convolution does not see all taps, and is bounded as
    if it did.
    """

    def __init__(self, *, limit: Annotated[float, Gt(0)] = 1.0) -> None:
        """Chooses the limit.

        Args:
            limit: The largest sum of absolute weights of a unit.
        """
        self.limit = limit

    def project(self, weights: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Every unit's weights in the ball."""
        projected = dict(weights)
        for name, operator in self._operators.items():
            transposed = isinstance(operator, lipschitz.TransposedConvolution)
            parts = blocks(operator, weights[name])
            parts = tf.linalg.matrix_transpose(parts) if transposed else parts
            flat = tf.reshape(parts, [parts.shape[0], -1, parts.shape[-1]])
            parts = tf.reshape(self._in_ball(flat), parts.shape)
            projected[name] = joined(operator, tf.linalg.matrix_transpose(parts) if transposed else parts)
        return projected

    def _in_ball(self, weights: tf.Tensor) -> tf.Tensor:
        """The weights of units, `(groups, weights, units)`, in the ball."""
        sizes = tf.sort(tf.abs(weights), axis=1, direction="DESCENDING")
        excess = (tf.cumsum(sizes, axis=1) - self.limit) / tf.range(1.0, sizes.shape[1] + 1.0)[:, None]
        # The threshold is the largest of these; none is positive for a unit inside the ball.
        threshold = tf.maximum(tf.reduce_max(excess, axis=1, keepdims=True), 0.0)
        return tf.sign(weights) * tf.maximum(tf.abs(weights) - threshold, 0.0)
