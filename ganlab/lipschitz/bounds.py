"""Upper bounds of operator norms, computed on the host in float64 with rounding covered."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from ganlab.lazy import require
from ganlab.lipschitz.operators import Convolution, DepthwiseConvolution, Operator

# Well above the rounding of float64, and too small to matter.
_ROUNDING = 1 + 1e-8
# Two frequencies whose squared norms differ by less count as equal, which saves computing most of the eigenvalues.
_SLACK = 1 + 2e-3
# Frequencies per axis, over taps less one: they cost 0.9% of tightness per axis, and 2% where matrices are large.
_DENSITY, _COARSE_DENSITY, _LARGE = 12, 8, 128
# The number of multiplications that a bound may need: about a second on two cores.
_WORK = 2e10
# Borders lower the norm of a convolution with this few outputs per axis by a tenth, and that of a wider one by little.
_SHORT = 4


def norm_bound(operator: Operator, kernel: Any) -> float:
    """An upper bound of an operator's norm: never below the norm, and near it.

    For a matrix, and for a convolution whose explicit matrix is small, it is the largest singular value. A larger or
    transposed convolution is taken without borders along one axis or all, which can only make its norm larger: along an
    infinite axis a convolution is one matrix for each frequency, and its norm is the largest of their norms (Sedghi,
    Gupta and Long, "The singular values of convolutional layers", 2019). Strides are unfolded into channels first.
    Between the sampled frequencies the norm is at most `max / cos(pi * (taps - 1) / (2 * frequencies))`, with one
    factor for each axis, because a trigonometric polynomial lies above a cosine near its maximum (Duffin and Schaeffer,
    "Some properties of functions of exponential type", 1938; compare Pfister and Bresler, "Bounding multivariate
    trigonometric polynomials", 2019).

    Args:
        operator: The map.
        kernel: Its kernel, an eager tensor or an array.

    Returns:
        The bound, rounding included; infinity for a kernel that is not finite.
    """
    kernel = np.asarray(kernel, np.float64)
    if not np.isfinite(kernel).all():
        return math.inf
    blocks = operator.blocks(kernel)
    # Threads of numpy's linear algebra occupy their cores while they wait for each other: if all cores are used and one
    # is busy with something else, a second becomes a minute.
    with require("threadpoolctl").threadpool_limits(max(1, (os.cpu_count() or 1) // 2), user_api="blas"):
        if not isinstance(operator, Convolution):
            return _ROUNDING * _largest(blocks)
        bordered = _bordered(operator, blocks.shape)
        return max(_convolution_bound(operator, block, bordered) for block in blocks)


def _convolution_bound(operator: Convolution, block: np.ndarray, bordered: int) -> float:
    """The bound with borders along the first `bordered` axes; `block` is `(*taps, inputs, outputs)`."""
    axes = range(bordered, block.ndim - 2)
    for axis in axes:
        block = _unfolded(block, axis, operator.strides[axis], operator.dilation[axis])
    counts = [_count(block.shape[axis], *block.shape[-2:]) for axis in axes]
    correction = math.prod(
        math.cos(math.pi * (block.shape[axis] - 1) / (2 * count)) for axis, count in zip(axes, counts, strict=True)
    )
    if axes:
        # Half of the frequencies: the others are complex conjugates with the same norms.
        block = np.fft.rfftn(block, s=counts, axes=axes)
    kernels = np.moveaxis(block, axes, range(len(axes))).reshape(-1, *block.shape[:bordered], *block.shape[-2:])
    return _ROUNDING * _largest(_explicit(operator, kernel) for kernel in kernels) / correction


def _bordered(operator: Convolution, blocks: tuple[int, ...]) -> int:
    """The number of leading axes with exact borders: all if their matrix is small enough, otherwise none or one."""
    groups, *taps, inputs, outputs = blocks
    if type(operator) not in (Convolution, DepthwiseConvolution):
        return 0
    if groups * _work(operator.input_shape[:-1], operator.output_shape[:-1], inputs, outputs) <= _WORK:
        return len(taps)
    if len(taps) == 1 or operator.output_shape[0] > _SHORT:
        return 0
    unfolded = inputs * math.prod(operator.strides[1:])
    counts = [_count(-(-t // s), unfolded, outputs) for t, s in zip(taps[1:], operator.strides[1:], strict=True)]
    work = math.prod(counts) // 2 * _work(operator.input_shape[:1], operator.output_shape[:1], unfolded, outputs)
    return 1 if groups * work <= _WORK else 0


def _work(space: tuple[int, ...], seeing: tuple[int, ...], inputs: int, outputs: int) -> int:
    sides = math.prod(space) * inputs, math.prod(seeing) * outputs
    return min(sides) * math.prod(sides)


def _count(taps: int, inputs: int, outputs: int) -> int:
    """The number of frequencies sampled along an axis."""
    return max((_DENSITY if min(inputs, outputs) <= _LARGE else _COARSE_DENSITY) * (taps - 1), 1)


def _largest(matrices: Iterable[np.ndarray]) -> float:
    """An upper bound of the largest singular value of these matrices, within `_SLACK`; exact for a single matrix."""
    largest, skipped = 0.0, False
    for matrix in matrices:
        adjoint = matrix.conj().T
        gram = matrix @ adjoint if matrix.shape[0] <= matrix.shape[1] else adjoint @ matrix
        if _is_below(gram, largest * _SLACK):
            skipped = True
        else:
            largest = max(largest, float(np.linalg.eigvalsh(gram)[-1]))
    return math.sqrt(largest * _SLACK if skipped else largest)


def _is_below(gram: np.ndarray, limit: float) -> bool:
    """Whether every eigenvalue is below: exactly then a Cholesky factorization exists, which takes a tenth as long."""
    if limit == 0:
        return False
    try:
        np.linalg.cholesky(limit * np.eye(len(gram)) - gram)
    except np.linalg.LinAlgError:
        return False
    return True


def _unfolded(block: np.ndarray, axis: int, stride: int, gap: int) -> np.ndarray:
    """The same convolution at stride 1 along an axis: `stride` cells of the input become channels of one cell."""
    if stride == 1:
        return block  # dilation alone only stretches frequencies, and all of them are covered
    taps = gap * (block.shape[axis] - 1) + 1
    spread = np.zeros((*block.shape[:axis], -(-taps // stride) * stride, *block.shape[axis + 1 :]))
    spread[(slice(None),) * axis + (slice(0, taps, gap),)] = block
    folded = spread.reshape(*spread.shape[:axis], -1, stride, *spread.shape[axis + 1 :])
    folded = np.moveaxis(folded, axis + 1, -3)
    return folded.reshape(*folded.shape[:-3], -1, folded.shape[-1])


def _explicit(operator: Convolution, block: np.ndarray) -> np.ndarray:
    """The matrix along the block's axes, `(outputs, inputs)`; `block` is `(*taps, inputs, outputs)`."""
    *taps, inputs, outputs = block.shape
    if not taps:
        return block.T
    spaces = operator.input_shape[: len(taps)], operator.output_shape[: len(taps)]
    matrix = np.zeros((math.prod(spaces[1]), outputs, math.prod(spaces[0]), inputs), block.dtype)
    geometry = list(zip(*spaces, operator.strides, operator.dilation, taps, strict=False))
    for tap in itertools.product(*map(range, taps)):
        pairs = [_pairs(operator.padding, *axis, t) for axis, t in zip(geometry, tap, strict=True)]
        seen, seeing = ([pair[side] for pair in pairs] for side in (0, 1))
        rows = np.ravel_multi_index(np.meshgrid(*seeing, indexing="ij"), spaces[1]).ravel()
        columns = np.ravel_multi_index(np.meshgrid(*seen, indexing="ij"), spaces[0]).ravel()
        matrix[rows, :, columns, :] = block[tap].T
    return matrix.reshape(math.prod(spaces[1]) * outputs, -1)


def _pairs(
    padding: str, length: int, outputs: int, stride: int, gap: int, taps: int, tap: int
) -> tuple[np.ndarray, np.ndarray]:
    """The inputs that a tap sees along one axis, and the outputs that see them through it."""
    reach = gap * (taps - 1)
    before = {"valid": 0, "causal": reach, "same": max((outputs - 1) * stride + reach + 1 - length, 0) // 2}[padding]
    seeing = np.arange(outputs)
    seen = seeing * stride + gap * tap - before
    inside = (seen >= 0) & (seen < length)
    return seen[inside], seeing[inside]
