"""Almost-orthogonal layers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from ganlab import lipschitz
from ganlab.functional import almost_orthogonal
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.certified import KernelMaps
from ganlab_builtin.constraints.convolution_blocks import blocks, joined, phases, unfolded


class AOL(KernelMaps):
    """Scales the inputs of every kernel so that no layer stretches, dense or convolution.

    Prach and Lampert, "Almost-orthogonal layers for efficient general-purpose Lipschitz networks" (2022), theorem 1:
    `P D` with `D = diag(sum_j |P'P|_ij)^(-1/2)` has no singular value above one, whatever P is, and all of them are one
    if the columns of P are orthogonal. For a convolution (theorem 2) the sum runs over the products of the kernel with
    itself at every shift, one sum for each input channel. It holds for every padding, because zeros at the border are
    inputs that are missing.

    With strides the paper's factor still holds. Here the inputs are first told apart by their place modulo the stride,
    which makes the convolution one at stride one with more channels: each tap then has the factor of the inputs that it
    sees, and the layer stretches nearly as far as it may.

    Where a dense layer has fewer units than inputs, units are scaled instead of inputs, by the same theorem for the
    transpose: it costs less, and shortens less what is no multiple of an orthogonal matrix.

    There is no state and no iteration, and the cost depends neither on the batch nor on the size of images. With
    1-Lipschitz activations every critic without branches is 1-Lipschitz, as the logged lipschitz_bound shows.
    """

    def reparameterize(self, weights: Mapping[str, tf.Tensor], state: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Every kernel with its inputs scaled."""
        scaled = dict(weights)
        for name, operator in self._operators.items():
            scaled[name] = _scaled(operator, weights[name])
        return scaled


def _scaled(operator: lipschitz.Operator, kernel: tf.Tensor) -> tf.Tensor:
    parts = blocks(operator, kernel)
    *groups_and_taps, inputs, outputs = parts.shape
    if math.prod(groups_and_taps) == 1 and outputs < inputs and not isinstance(operator, lipschitz.Convolution):
        return joined(operator, almost_orthogonal(parts[0], outputs=True)[None])
    sums = _row_sums(unfolded(operator, parts))
    # Inputs that no weight sees stay as they are.
    factors = tf.math.rsqrt(tf.where(sums > 0, sums, 1.0))
    taps = phases(operator)
    strides = operator.strides if isinstance(operator, lipschitz.Convolution) else ()
    factors = tf.reshape(factors, [parts.shape[0], *strides, parts.shape[-2]])
    for axis, phase in enumerate(taps, start=1):
        factors = tf.gather(factors, phase, axis=axis)
    return joined(operator, parts * factors[..., None])


def _row_sums(parts: tf.Tensor) -> tf.Tensor:
    """Sums of absolute products of each input with all inputs at all shifts, `(groups, inputs)`."""
    groups, *taps, inputs, _ = parts.shape
    axes = len(taps)
    parts = tf.transpose(parts, [0, axes + 1, *range(1, axes + 1), axes + 2])
    total = tf.zeros([groups, inputs])
    for shift in itertools.product(*(range(1 - count, count) for count in taps)):
        if shift < (0,) * axes:
            continue  # the transpose of what the opposite shift gives
        pairs = list(zip(shift, taps, strict=True))
        one = parts[(slice(None),) * 2 + tuple(slice(max(-s, 0), count - max(s, 0)) for s, count in pairs)]
        other = parts[(slice(None),) * 2 + tuple(slice(max(s, 0), count - max(-s, 0)) for s, count in pairs)]
        one, other = (tf.reshape(x, [groups, inputs, -1]) for x in (one, other))
        products = tf.abs(tf.matmul(one, other, transpose_b=True))
        total += tf.reduce_sum(products, axis=2)
        if any(shift):
            total += tf.reduce_sum(products, axis=1)
    return total
