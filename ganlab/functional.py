"""Pure functions for writing plugins: slopes, norms, matrices and random numbers by example."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ganlab import piecewise
from ganlab.lazy import tensorflow as tf
from ganlab.plugins.optional import call as _call

if TYPE_CHECKING:
    import keras

    from ganlab.interfaces.constraint import Critic

# Added under the square root: keeps the gradient finite at zero, where the norm is 1e-6. Elsewhere rounding hides it.
_TINY = 1e-12
# Above what rounding takes off a sum of absolute values in float32.
_MARGIN = 1 + 2e-6
# Of Gram iteration: its bound is at most rank^(1 / 128) times the norm; and frequencies for each tap but the first.
_GRAM_STEPS, _FREQUENCIES = 6, 6
# Of SplitMix64: what a counter is multiplied by, and the shifts and factors of its finalizer.
_GOLDEN, _ROUNDS, _LAST_SHIFT = 0x9E3779B97F4A7C15, ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)), 31
# Marks the tensors of `fixed` in a graph, for checks that take differences of a loss.
FIXED = "ganlab_fixed"


def input_gradient(critic: Critic, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The gradient of each example's score with respect to that example, differentiable once more.

    Args:
        critic: `(n, *sample_shape) -> (n,)`.
        x: The points at which to differentiate, `(n, *sample_shape)` float32.

    Returns:
        The gradient, of x's shape, and the scores, `(n,)`; both float32.
    """
    with tf.GradientTape() as tape:
        tape.watch(x)
        scores = critic(x)
    with piecewise.without_curvature():
        return tape.gradient(scores, x, unconnected_gradients="zero"), scores


def example_norm(x: tf.Tensor, ord: float = 2.0) -> tf.Tensor:
    """The norm of each example, `(n, ...) -> (n,)` float32; its gradient is finite (zero) at zero.

    Args:
        x: Any floating dtype.
        ord: The order of the norm of the flattened example: from 1, the sum of absolute values, to inf, the largest of
            them. 2 is the Euclidean norm.
    """
    flat = tf.reshape(tf.cast(x, tf.float32), [x.shape[0], -1])
    if ord == 2:
        return tf.sqrt(tf.reduce_sum(tf.square(flat), axis=1) + _TINY)
    flat = tf.abs(flat)
    if ord == 1:
        return tf.reduce_sum(flat, axis=1)
    largest = tf.reduce_max(flat, axis=1)
    if ord == math.inf:
        return largest
    # Powers of numbers up to 1 neither overflow nor vanish. The scale cancels, so it needs no gradient.
    scale = tf.stop_gradient(tf.maximum(largest, _TINY))
    return scale * tf.pow(tf.reduce_sum(tf.pow(flat / scale[:, None], ord), axis=1) + _TINY, 1.0 / ord)


def slopes(critic: Critic, x: tf.Tensor) -> tf.Tensor:
    """The critic's slope at each example: the norm of `input_gradient`, `(n,)` float32."""
    return example_norm(input_gradient(critic, x)[0])


def fixed(x: tf.Tensor) -> tf.Tensor:
    """Holds values fixed on purpose: a constant in every gradient, as under `tf.stop_gradient`.

    `ganlab verify` keeps these values constant in the loss, while it reports a plain `tf.stop_gradient` as wrong. Use
    it for example for the vectors of a power iteration, which carry no gradient by definition. Values that can be
    computed before the update belong in a constraint's `advance` instead.
    """
    return tf.stop_gradient(x, name=FIXED)


def interpolate(real: tf.Tensor, fake: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    """`weight * real + (1 - weight) * fake` with one weight for each example, `(n,)`; all float32."""
    weight = tf.reshape(weight, [real.shape[0]] + [1] * (len(real.shape) - 1))
    return weight * real + (1.0 - weight) * fake


def moments(x: tf.Tensor, axes: int | Sequence[int]) -> tuple[tf.Tensor, tf.Tensor]:
    """Mean and variance over `axes`, which are kept with length one; all their derivatives are right.

    `tf.nn.moments` stops the mean's gradient inside the variance, so its second derivative lacks a term.

    Args:
        x: Any shape, floating-point.
        axes: The axes to reduce.

    Returns:
        The mean and the variance (divided by the count), of x's dtype.
    """
    mean = tf.reduce_mean(x, axes, keepdims=True)
    return mean, tf.reduce_mean(tf.square(x - mean), axes, keepdims=True)


def resize(x: tf.Tensor, size: Sequence[int], method: str = "bilinear", *, antialias: bool = False) -> tf.Tensor:
    """Resizes images like `tf.image.resize`, by products of matrices.

    The numbers are those of `tf.image.resize`, up to rounding. Its own second derivative is silently cut off for
    bilinear interpolation and missing for the other methods; this one is right.

    Args:
        x: `(n, height, width, channels)`, of known height and width.
        size: The new height and width.
        method: "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian" or "mitchellcubic".
        antialias: Whether to widen the kernel where images are made smaller.

    Returns:
        `(n, *size, channels)`, float64 if x is and float32 otherwise.

    Raises:
        ValueError: The method is unknown, or the images have no known size.
    """
    x = tf.convert_to_tensor(x)
    if x.shape.rank != 4 or None in x.shape[1:3]:
        raise ValueError(
            f"ganlab.functional.resize got the shape {x.shape}; it must be (n, height, width, channels) with known "
            "height and width."
        )
    x = x if x.dtype == tf.float64 else tf.cast(x, tf.float32)
    height, width = (
        tf.constant(resizing_matrix(int(before), int(after), method, antialias), x.dtype)
        for before, after in zip(x.shape[1:3], size, strict=True)
    )
    rows = tf.reshape(x, [-1, x.shape[1], x.shape[2] * x.shape[3]])
    rows = tf.reshape(tf.matmul(height, rows), [-1, int(size[0]), x.shape[2], x.shape[3]])
    return tf.matmul(width, rows)


@functools.lru_cache(maxsize=256)
def resizing_matrix(before: int, after: int, method: str = "bilinear", antialias: bool = False) -> np.ndarray:
    """The matrix by which `resize` multiplies one axis, `(after, before)` float32: column i is pixel i, resized."""
    with tf.init_scope(), tf.device("CPU:0"):
        pixels = tf.eye(before)[None, :, None, :]
        return tf.image.resize(pixels, (after, 1), method=method, antialias=antialias)[0, :, 0].numpy()


def call(method: Callable[..., Any], *given: Any, **optional: Any) -> Any:
    """Calls a method of a component inside another one, with those optional parameters that it names.

    A loss that wraps another calls `call(self.inner.critic, real_scores, fake_scores, batch=batch, replica=replica)`,
    whether the inner loss takes a batch or not.

    Args:
        method: The method.
        *given: Its required arguments, by position.
        **optional: The optional ones, by name.
    """
    return _call(method, *given, **optional)


def as_matrix(kernel: tf.Tensor) -> tf.Tensor:
    """A dense or convolution kernel as the matrix `(everything else, outputs)`; its last axis is the outputs'."""
    return tf.reshape(kernel, [-1, kernel.shape[-1]])


def gram_row_sums(
    kernel: tf.Tensor, strides: Sequence[int] = (), *, outputs: bool = False, weights: tf.Tensor | None = None
) -> tf.Tensor:
    """The sums of absolute values along the rows of the Gram matrix of a kernel's map.

    For the matrix P that maps inputs to outputs it is `sum_j |P'P|_ij q_j / q_i`, one number for each input, and with
    `outputs` the same of `PP'`. As a diagonal matrix T these numbers satisfy `P'P <= T` (Prach and Lampert,
    "Almost-orthogonal layers for efficient general-purpose Lipschitz networks", 2022, theorem 1; with q, Araujo et al.,
    "A unified algebraic perspective on Lipschitz neural networks", 2023, theorem 3). For a convolution, P is the map
    on images without borders, and the numbers are the same at all places of one phase. A border of zeros only leaves
    out rows and columns of P, so the inequality holds with any padding.

    Args:
        kernel: A dense kernel `(inputs, outputs)` or a convolution's `(*taps, inputs, outputs)`, without groups and
            dilation; float32 or float64.
        strides: The convolution's, one for each axis; empty for 1.
        outputs: Whether to take the Gram matrix of outputs instead of that of inputs.
        weights: The numbers q, positive, of the result's shape; None for ones.

    Returns:
        `(outputs,)` or `(*strides, inputs)`: tap t sees inputs of phase `t mod stride`. The axes of strides are absent
        without taps.
    """
    taps = len(kernel.shape) - 2
    strides = tuple(strides) or (1,) * taps
    folded = _folded(kernel, strides)
    side, other = (taps + 1, taps) if outputs else (taps, taps + 1)
    folded = tf.transpose(folded, [side, *range(taps), other])
    side, *lengths, _ = folded.shape
    weights = tf.ones([side], folded.dtype) if weights is None else tf.reshape(weights, [side])
    sums = tf.zeros([side], folded.dtype)
    for offset in itertools.product(*(range(1 - length, length) for length in lengths)):
        if offset < (0,) * taps:
            continue  # the block at this offset is the transpose of the block at the opposite one
        block = tf.abs(_correlation(folded, offset))
        sums += tf.linalg.matvec(block, weights)
        if any(offset):
            sums += tf.linalg.matvec(block, weights, transpose_a=True)
    sums /= weights
    return sums if outputs or not taps else tf.reshape(sums, [*strides, -1])


def almost_orthogonal(kernel: tf.Tensor, strides: Sequence[int] = (), *, outputs: bool = False) -> tf.Tensor:
    """A kernel rescaled so that its map has a norm of at most one.

    Prach and Lampert, "Almost-orthogonal layers for efficient general-purpose Lipschitz networks" (2022), theorem 1 and
    for convolutions theorem 2: `P diag(sum_j |P'P|_ij)^(-1/2)`, for any size of image and any padding. An orthogonal
    map stays as it is.

    Args:
        kernel: As in `gram_row_sums`.
        strides: The convolution's, one for each axis; empty for 1.
        outputs: Whether to rescale outputs, `diag(sum_j |PP'|_ij)^(-1/2) P`: the same for the transpose, cheaper where
            there are fewer outputs than inputs.

    Returns:
        The kernel of the rescaled map, of the kernel's shape and dtype.
    """
    taps = len(kernel.shape) - 2
    sums = gram_row_sums(kernel, strides, outputs=outputs)
    # The margin is for the rounding of sums, so that the norm is not above one by it.
    factors = tf.math.rsqrt(sums * _MARGIN + _TINY)
    if not outputs and taps:
        repeats = [-(-t // s) for t, s in zip(kernel.shape, factors.shape[:-1], strict=False)]
        factors = tf.tile(factors, [*repeats, 1])[tuple(slice(0, t) for t in kernel.shape[:taps])]
    return kernel * (factors if outputs else factors[..., None])


def cayley(matrices: tf.Tensor) -> tf.Tensor:
    """Matrices with orthonormal columns by Cayley's transform, in one step.

    Trockman and Kolter, "Orthogonalizing convolutional layers with the Cayley transform" (2021), section 4 and, for
    matrices that are not square, appendix: with `A = U - U' + V'V`, where U are the first n rows and V the others,
    `[(I + A)^-1 (I - A); -2 V (I + A)^-1]`. The inverse exists for every matrix. Square results have determinant 1 and
    no eigenvalue -1, which are the limits of the transform.

    Args:
        matrices: `(..., rows, columns)` with no more columns than rows, float32 or float64.

    Returns:
        The matrices with orthonormal columns, of this shape and dtype.
    """
    count = matrices.shape[-1]
    square, rest = matrices[..., :count, :], matrices[..., count:, :]
    skew = square - tf.linalg.matrix_transpose(square) + tf.matmul(rest, rest, transpose_a=True)
    identity = tf.eye(count, batch_shape=matrices.shape[:-2], dtype=matrices.dtype)
    # With (I + A)^-1 = X: (I + A)^-1 (I - A) = 2 X - I, and all of it is one product with X.
    inverse = tf.linalg.solve(identity + skew, identity)
    return tf.concat([2.0 * inverse - identity, -2.0 * tf.matmul(rest, inverse)], axis=-2)


def orthonormal(matrices: tf.Tensor) -> tf.Tensor:
    """Matrices with orthonormal columns, as by `cayley`, of a norm of at most one in spite of rounding."""
    columns = cayley(matrices)
    identity = tf.eye(columns.shape[-1], dtype=columns.dtype)
    for _ in range(2):  # steps of Björck's iteration take off the rounding, which weights in thousands raise to 1e-2
        columns = tf.matmul(columns, 1.5 * identity - 0.5 * tf.matmul(columns, columns, transpose_a=True))
    # |C|^2 <= 1 + |C'C - I|. What is left is rounding alone, whose gradient would be noise; and as much again may be
    # hidden by that of the sums, half a unit of the last place for each term.
    error = tf.norm(tf.matmul(columns, columns, transpose_a=True) - identity, axis=(-2, -1), keepdims=True)
    error += columns.shape[-2] * np.finfo(columns.dtype.as_numpy_dtype).eps / 2
    return columns * fixed(tf.math.rsqrt(1.0 + error))


def _correlation(taps: tf.Tensor, offset: Sequence[int]) -> tf.Tensor:
    """`sum_t K_t K'_(t + offset)` of the taps K_t, matrices `(a, b)`: `(a, a)` from `(a, *taps, b)`."""
    spans = list(zip(offset, taps.shape[1:], strict=False))
    first = taps[(slice(None), *(slice(max(0, -d), length - max(0, d)) for d, length in spans))]
    second = taps[(slice(None), *(slice(max(0, d), length - max(0, -d)) for d, length in spans))]
    # Taps as further columns, so that each offset is one product of matrices.
    first, second = (tf.reshape(part, [part.shape[0], -1]) for part in (first, second))
    return tf.matmul(first, second, transpose_b=True)


def _folded(kernel: tf.Tensor, strides: Sequence[int]) -> tf.Tensor:
    """The same convolution at stride 1: the inputs within a stride become channels, `(*phases, inputs)` flattened."""
    taps = len(strides)
    if all(stride == 1 for stride in strides):
        return kernel
    counts = [-(-t // s) for t, s in zip(kernel.shape, strides, strict=False)]
    spread = [[0, c * s - t] for t, c, s in zip(kernel.shape, counts, strides, strict=False)]
    kernel = tf.pad(kernel, [*spread, [0, 0], [0, 0]])
    inputs, outputs = kernel.shape[-2:]
    kernel = tf.reshape(kernel, [*(n for pair in zip(counts, strides, strict=True) for n in pair), inputs, outputs])
    order = [*range(0, 2 * taps, 2), *range(1, 2 * taps, 2), 2 * taps, 2 * taps + 1]
    return tf.reshape(tf.transpose(kernel, order), [*counts, -1, outputs])


def squared_norm_bound(kernel: tf.Tensor) -> tf.Tensor:
    """An upper bound of the squared norm of a dense kernel's or a convolution's map, by Gram iteration.

    Delattre, Barthélemy, Araujo and Allauzen, "Efficient bound of Lipschitz constant for convolutional layers by Gram
    iteration" (2023), theorem 2: `|(A'A)^(2^k)|^(2^-k)` in Frobenius' norm, at every step above the largest eigenvalue.
    A convolution with any zero padding is a part of that along infinite axes, whose matrix at a frequency w is
    `sum_t K_t exp(-i w t)`. Between the sampled frequencies the norm is higher by a factor of at most
    `1 / cos(pi (taps - 1) / (2 samples))` for each axis, by which the bound is raised.

    Args:
        kernel: `(inputs, outputs)` or `(*taps, inputs, outputs)` at stride 1, float32 or float64.

    Returns:
        The bound, a scalar, differentiable.
    """
    *taps, inputs, outputs = kernel.shape
    samples = [max(1, _FREQUENCIES * (length - 1)) for length in taps]
    # Frequencies w and -w have conjugate matrices.
    counts = [range(n if axis else n // 2 + 1) for axis, n in enumerate(samples)]
    angles = np.array(
        [
            [
                sum(2 * math.pi * f * t / n for f, t, n in zip(frequency, tap, samples, strict=True))
                for tap in itertools.product(*map(range, taps))
            ]
            for frequency in itertools.product(*counts)
        ]
    )
    flat = tf.reshape(kernel, [-1, inputs * outputs])
    real, imaginary = (
        tf.reshape(tf.matmul(tf.constant(wave(angles), kernel.dtype), flat), [-1, inputs, outputs])
        for wave in (np.cos, np.sin)
    )
    # Complex matrices as real ones of twice the size, which have every singular value twice.
    matrices = tf.concat([tf.concat([real, -imaginary], 2), tf.concat([imaginary, real], 2)], 1)
    gram = tf.matmul(matrices, matrices, transpose_a=outputs <= inputs, transpose_b=outputs > inputs)
    logarithm = tf.zeros([len(angles)], kernel.dtype)
    for step in range(_GRAM_STEPS + 1):
        size = tf.sqrt(tf.reduce_sum(tf.square(gram), [1, 2]) / 2 + _TINY**2)
        logarithm += tf.math.log(size) / 2**step
        if step < _GRAM_STEPS:
            gram /= size[:, None, None]
            gram = tf.matmul(gram, gram)
    cosines = (math.cos(math.pi * (t - 1) / (2 * n)) for t, n in zip(taps, samples, strict=True))
    return tf.exp(tf.reduce_max(logarithm)) / math.prod(cosines) ** 2


def named_weights(model: keras.Model) -> dict[str, keras.Variable]:
    """The trainable variables of a model by the names that constraints see: Keras paths, made unique.

    If several variables have the same path, the later ones get the suffix `#2`, `#3` and so on, in the order of
    `model.trainable_variables`.
    """
    return unique_names(model.trainable_variables)


def unique_names(variables: Sequence[keras.Variable]) -> dict[str, keras.Variable]:
    """Keras variables by path; later ones of the same path get the suffix `#2`, `#3` and so on."""
    named: dict[str, keras.Variable] = {}
    for variable in variables:
        path, count = variable.path, 1
        while (path if count == 1 else f"{path}#{count}") in named:
            count += 1
        named[path if count == 1 else f"{path}#{count}"] = variable
    return named


def example_uniform(numbers: tf.Tensor, width: int, seed: int, stream: int = 0) -> tf.Tensor:
    """Uniform numbers that belong to example numbers: the same for an example in every batch.

    Each is a hash of (seed, stream, number, column) by the finalizer of SplitMix64 (Steele, Lea and Flood, "Fast
    splittable pseudorandom number generators", 2014), of which the upper 24 bits are used.

    Args:
        numbers: int64, `(n,)`.
        width: How many numbers each example gets.
        seed: The experiment's seed.
        stream: Distinguishes independent draws of one dataset.

    Returns:
        float32 in [0, 1), `(n, width)`.
    """

    def constant(number: int) -> tf.Tensor:
        return tf.constant(number, tf.uint64)

    rounds, last = [(constant(shift), constant(factor)) for shift, factor in _ROUNDS], constant(_LAST_SHIFT)

    def mixed(x: tf.Tensor) -> tf.Tensor:
        for shift, factor in rounds:
            x = tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, shift)) * factor
        return tf.bitwise.bitwise_xor(x, tf.bitwise.right_shift(x, last))

    columns = tf.range(1, width + 1, dtype=tf.int64)
    counter = tf.cast(numbers[:, None] * width + columns[None, :], tf.uint64)
    bits = mixed(mixed(counter * constant(_GOLDEN) + constant(_key(seed, stream))))
    return tf.cast(tf.bitwise.right_shift(bits, constant(40)), tf.float32) * (2.0**-24)


def _key(seed: int, stream: int) -> int:
    """The hash of a seed and a stream, in Python's integers: a graph then has one constant instead of fifteen nodes."""
    x = ((seed << 20) + stream + _GOLDEN) % 2**64
    for shift, factor in _ROUNDS:
        x = (x ^ (x >> shift)) * factor % 2**64
    return x ^ (x >> _LAST_SHIFT)


def example_normal(numbers: tf.Tensor, width: int, seed: int, stream: int = 0) -> tf.Tensor:
    """Standard normal numbers that belong to example numbers (Box and Muller, 1958); see `example_uniform`.

    Returns:
        float32, `(n, width)`.
    """
    pairs = (width + 1) // 2
    uniform = example_uniform(numbers, 2 * pairs, seed, stream)
    radius = tf.sqrt(-2.0 * tf.math.log(1.0 - uniform[:, :pairs]))
    angle = 2.0 * math.pi * uniform[:, pairs:]
    return tf.concat([radius * tf.cos(angle), radius * tf.sin(angle)], axis=1)[:, :width]
