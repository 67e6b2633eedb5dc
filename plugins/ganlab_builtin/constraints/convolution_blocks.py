"""Kernels as convolutions at stride one, differentiably, for constraints that need more than a matrix."""

from __future__ import annotations

import math

from ganlab.lazy import tensorflow as tf
from ganlab.lipschitz import Convolution, DepthwiseConvolution, Operator


def blocks(operator: Operator, kernel: tf.Tensor) -> tf.Tensor:
    """The independent parts of a kernel's map, `(groups, *taps, inputs, outputs)`.

    A dense layer has one part without taps. A transposed convolution returns its adjoint, which has the same norm.
    """
    if isinstance(operator, DepthwiseConvolution):
        *taps, channels, multiplier = range(len(kernel.shape))
        return tf.transpose(kernel, [channels, *taps, multiplier])[..., None, :]
    if not isinstance(operator, Convolution) or operator.groups == 1:
        return kernel[None]
    *shape, outputs = kernel.shape
    kernel = tf.reshape(kernel, [*shape, operator.groups, outputs // operator.groups])
    axes = len(shape)
    return tf.transpose(kernel, [axes, *range(axes), axes + 1])


def joined(operator: Operator, parts: tf.Tensor) -> tf.Tensor:
    """The kernel of these blocks: the inverse of `blocks`."""
    axes = len(parts.shape) - 2
    if isinstance(operator, DepthwiseConvolution):
        *taps, multiplier = range(1, axes + 1)
        return tf.transpose(parts[..., 0, :], [*taps, 0, multiplier])
    if not isinstance(operator, Convolution) or operator.groups == 1:
        return parts[0]
    kernel = tf.transpose(parts, [*range(1, axes + 1), 0, axes + 1])
    return tf.reshape(kernel, [*kernel.shape[:-2], -1])


def phases(operator: Operator) -> list[list[int]]:
    """For each axis and tap, which of the `stride` interleaved parts of the input the tap sees."""
    if not isinstance(operator, Convolution):
        return []
    geometry = zip(operator.taps, operator.strides, operator.dilation, strict=True)
    return [[tap * gap % stride for tap in range(taps)] for taps, stride, gap in geometry]


def unfolded(operator: Operator, parts: tf.Tensor) -> tf.Tensor:
    """The same convolution at stride one, `(groups, *fewer taps, strides * inputs, outputs)`.

    Along each axis `stride` neighbouring cells of the input become channels of one cell. Inputs are numbered by their
    `phases` first, in the order of axes, and then by channel.
    """
    if not isinstance(operator, Convolution) or math.prod(operator.strides) == 1:
        return parts  # dilation alone only moves taps apart, which changes neither norms nor products of two taps
    for axis, (stride, gap) in enumerate(zip(operator.strides, operator.dilation, strict=True), start=1):
        parts = _spread(parts, axis, gap)
        missing = -parts.shape[axis] % stride
        parts = tf.pad(parts, [[0, missing if other == axis else 0] for other in range(len(parts.shape))])
    groups, *taps, inputs, outputs = parts.shape
    cells = [(tap // stride, stride) for tap, stride in zip(taps, operator.strides, strict=True)]
    parts = tf.reshape(parts, [groups, *(length for cell in cells for length in cell), inputs, outputs])
    axes = 2 * len(taps)
    parts = tf.transpose(parts, [0, *range(1, axes, 2), *range(2, axes + 1, 2), axes + 1, axes + 2])
    return tf.reshape(parts, [groups, *(cell[0] for cell in cells), math.prod(operator.strides) * inputs, outputs])


def _spread(parts: tf.Tensor, axis: int, gap: int) -> tf.Tensor:
    """The same taps with `gap - 1` zeros after each."""
    if gap == 1:
        return parts
    shape = list(parts.shape)
    parts = tf.expand_dims(parts, axis + 1)
    parts = tf.pad(parts, [[0, gap - 1 if other == axis + 1 else 0] for other in range(len(parts.shape))])
    return tf.reshape(parts, [*shape[:axis], shape[axis] * gap, *shape[axis + 1 :]])
