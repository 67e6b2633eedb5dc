"""The matrix of a convolution, entry by entry from its definition."""

import itertools

import numpy as np


def padding_before(length, outputs, taps, stride, dilation, padding):
    reach = dilation * (taps - 1) + 1
    if padding == "valid":
        return 0
    if padding == "causal":
        return reach - 1
    return max((outputs - 1) * stride + reach - length, 0) // 2


def convolution_matrix(kernel, input_shape, output_shape, *, strides, dilation, padding, groups=1):
    """`(outputs, inputs)` of `kernel (*taps, inputs / groups, outputs)`, on channels-last examples, flattened."""
    *taps, per_group, channels = kernel.shape
    matrix = np.zeros((*output_shape, *input_shape))
    before = [
        padding_before(n, m, k, s, d, padding)
        for n, m, k, s, d in zip(input_shape, output_shape, taps, strides, dilation, strict=False)
    ]
    for place in itertools.product(*map(range, output_shape[:-1])):
        for tap in itertools.product(*map(range, taps)):
            seen = [p * s + t * d - b for p, s, t, d, b in zip(place, strides, tap, dilation, before, strict=True)]
            if any(not 0 <= i < n for i, n in zip(seen, input_shape, strict=False)):
                continue
            for out in range(channels):
                first = out // (channels // groups) * per_group
                for i in range(per_group):
                    matrix[(*place, out, *seen, first + i)] = kernel[(*tap, i, out)]
    return matrix.reshape(np.prod(output_shape), np.prod(input_shape))


def depthwise_matrix(kernel, input_shape, output_shape, **geometry):
    """`(outputs, inputs)` of `kernel (*taps, inputs, multiplier)`: output `c * multiplier + m` sees channel c."""
    *taps, channels, multiplier = kernel.shape
    grouped = np.moveaxis(kernel.reshape(*taps, channels * multiplier)[..., None], -1, -2)
    return convolution_matrix(grouped, input_shape, output_shape, groups=channels, **geometry)


def norm(matrix):
    return np.linalg.svd(matrix, compute_uv=False)[0]
