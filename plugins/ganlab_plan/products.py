"""Floating-point operations of matrix products and convolutions, from their shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

_MATMULS = ("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
# Which of image, filter and output an operation has: inputs by their position, None for its result, by its type.
_CONVOLUTIONS: dict[str, tuple[int | None, int | None, int | None]] = {
    "Conv2D": (0, 1, None),
    "Conv3D": (0, 1, None),
    "DepthwiseConv2dNative": (0, 1, None),
    "Conv2DBackpropInput": (None, 1, 2),
    "Conv3DBackpropInputV2": (None, 1, 2),
    "DepthwiseConv2dNativeBackpropInput": (None, 1, 2),
    "Conv2DBackpropFilter": (0, None, 2),
    "Conv3DBackpropFilterV2": (0, None, 2),
    "DepthwiseConv2dNativeBackpropFilter": (0, None, 2),
}
PRODUCTS = (*_MATMULS, *_CONVOLUTIONS)


def flops(op: Any) -> float:
    """Operations of a product, two for each multiplication with its addition; 0 for one whose shapes are unknown.

    Products of a convolution with the zeros of its padding do not count, as they do not with XLA.

    Args:
        op: A TensorFlow operation of a type in `PRODUCTS`.
    """
    shapes = [tensor.shape.as_list() if tensor.shape.rank is not None else None for tensor in op.inputs]
    result = op.outputs[0].shape.as_list() if op.outputs[0].shape.rank is not None else None
    if op.type in _MATMULS:
        if shapes[0] is None or result is None or None in (*shapes[0], *result):
            return 0.0
        transposed = op.get_attr("transpose_a" if op.type == "MatMul" else "adj_x")
        return 2.0 * math.prod(result) * shapes[0][-2 if transposed else -1]
    image, weights, output = (result if i is None else shapes[i] for i in _CONVOLUTIONS[op.type])
    if any(shape is None or None in shape for shape in (image, weights, output)):
        return 0.0
    return _convolution(op, image, weights, output)  # type: ignore[arg-type]  # mypy loses the test above


def _convolution(op: Any, image: Sequence[int], weights: Sequence[int], output: Sequence[int]) -> float:
    layout = op.get_attr("data_format").decode()
    spatial = [axis for axis, letter in enumerate(layout) if letter not in "NC"]
    names = [attribute.name for attribute in op.op_def.attr]
    padding = op.get_attr("padding").decode()
    explicit = op.get_attr("explicit_paddings") if "explicit_paddings" in names else []
    dilations = op.get_attr("dilations") if "dilations" in names else [1] * len(image)
    strides = op.get_attr("strides")
    used = 1
    for i, axis in enumerate(spatial):
        size, kernel, out = image[axis], weights[i], output[axis]
        reach, stride = (kernel - 1) * dilations[axis] + 1, strides[axis]
        before = {"VALID": 0, "SAME": max(0, (out - 1) * stride + reach - size) // 2}.get(padding)
        start = explicit[2 * axis] if before is None else before
        used *= _inside(size, kernel, out, stride, dilations[axis], start)
    # Input channels of a group times output channels; of a depthwise filter, channels times their multiplier.
    return 2.0 * image[0] * used * weights[-2] * weights[-1]


def _inside(size: int, kernel: int, out: int, stride: int, dilation: int, before: int) -> int:
    """Pairs of an output and a kernel position, along one side, that meet the image and not its padding."""
    return sum(0 <= o * stride - before + k * dilation < size for o in range(out) for k in range(kernel))
