"""Normalization by Gram iteration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np

import ganlab
from ganlab import lipschitz
from ganlab.bounds import Ge, Le
from ganlab.functional import as_matrix
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.certified import Certified
from ganlab_builtin.constraints.convolution_blocks import blocks, unfolded

if TYPE_CHECKING:
    import keras


class GramNorm(Certified):
    """Divides every kernel by an upper bound of its norm, so that no layer stretches at any moment of training.

    Delattre, Barthélemy, Araujo and Allauzen, "Efficient bound of Lipschitz constant for convolutional layers by Gram
    iteration" (2023), theorem 2: with `G <- G'G` from the kernel on, `|G|^(2^-t)`, Frobenius' norm after t steps, is
    never below the largest singular value and approaches it. After 6 steps it is at most 5% above it for 512 singular
    values, however equal they are; power iteration (spectral_norm) comes from below, and has no such promise. The bound
    is differentiated, and needs no state.

    A convolution is bounded in frequency, one matrix for each, as in the paper. That alone bounds convolutions with
    circular padding. Layers pad with zeros or not at all, which is a part of the convolution along infinite axes; its
    norm is the largest over all frequencies, not only those sampled. Between samples it is higher by a factor of at
    most `1 / cos(pi / (2 * density))` for each axis, as `ganlab.lipschitz.norm_bound` explains, and by that factor the
    bound is raised. Strides are unfolded into channels first. With `operator = "matrix"` the kernel is taken as the
    matrix (everything else, outputs) instead, whose norm times the square root of how many patches an input lies in
    bounds the convolution, too. That is cheaper, and up to that root too large.
    """

    _name: ClassVar[str] = "gram_norm"

    def __init__(
        self,
        *,
        operator: Literal["convolution", "matrix"] = "convolution",
        iterations: Annotated[int, Ge(1), Le(10_000)] = 6,
        density: Annotated[int, Ge(2)] = 6,
    ) -> None:
        """Chooses how tight the bound is.

        Args:
            operator: The "convolution" itself, or its kernel as a "matrix".
            iterations: Steps of the iteration. Each halves the logarithm of the bound's excess, and costs a product of
                two matrices whose size is the smaller number of channels.
            density: Frequencies along an axis for each tap but the first. 6 raise the bound by 3.5% for each axis,
                12 by 0.9%.
        """
        if operator not in ("convolution", "matrix"):
            raise ganlab.ConfigError(
                f"constraints.{self._name}.operator = {operator!r} must be 'convolution' or 'matrix'."
            )
        self.operator, self.iterations, self.density = operator, iterations, density

    def prepare(self, critic: keras.Model) -> None:
        """Prepares the operator of each kernel."""
        self._operators = lipschitz.operators(critic)
        super().prepare(critic)

    def reparameterize(self, weights: Mapping[str, tf.Tensor], state: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Every kernel over the bound of its norm."""
        normalized = dict(weights)
        for name in self._operators:
            normalized[name] = weights[name] / self._norm_bound(name, weights[name])
        return normalized

    def _norm_bound(self, name: str, kernel: tf.Tensor) -> tf.Tensor:
        operator = self._operators[name]
        if self.operator == "matrix":
            bound = math.sqrt(operator.overlap) * self._iterated(as_matrix(kernel)[None], None)
        else:
            bound = self._in_frequency(unfolded(operator, blocks(operator, kernel)))
        return tf.maximum(bound, 1e-12)

    def _in_frequency(self, parts: tf.Tensor) -> tf.Tensor:
        groups, *taps, inputs, outputs = parts.shape
        if math.prod(taps) == 1:
            return self._iterated(tf.reshape(parts, [groups, inputs, outputs]), None)
        angles = _angles(taps, self.density)
        flat = tf.reshape(parts, [groups, math.prod(taps), inputs * outputs])
        real, imaginary = (
            tf.reshape(tf.matmul(tf.constant(wave, tf.float32), flat), [-1, inputs, outputs])
            for wave in (np.cos(angles), -np.sin(angles))
        )
        axes = sum(count > 1 for count in taps)
        return self._iterated(real, imaginary) / math.cos(math.pi / (2 * self.density)) ** axes

    def _iterated(self, real: tf.Tensor, imaginary: tf.Tensor | None) -> tf.Tensor:
        """The largest bound of these matrices, `(n, rows, columns)`."""
        logarithm, power = tf.zeros([real.shape[0]]), 1.0
        for step in range(self.iterations):
            size = _frobenius(real, imaginary)
            logarithm += tf.math.log(size) * power
            power /= 2
            real = real / size[:, None, None]
            imaginary = None if imaginary is None else imaginary / size[:, None, None]
            # Along the shorter side first; the Gram matrix is Hermitian, and its own is its square.
            real, imaginary = _gram(real, imaginary, step == 0 and real.shape[1] < real.shape[2])
        logarithm += tf.math.log(_frobenius(real, imaginary)) * power
        return tf.exp(tf.reduce_max(logarithm))


def _angles(taps: list[int], density: int) -> np.ndarray:
    """The phase of every tap at every frequency, `(frequencies, taps)`.

    Half of the frequencies: the others are complex conjugates with the same norms.
    """
    counts = [max(density * (count - 1), 1) for count in taps]
    sampled = [range(count) for count in counts[:-1]] + [range(counts[-1] // 2 + 1)]
    waves = 2 * np.pi * np.array(list(itertools.product(*sampled))) / counts
    return waves @ np.array(list(itertools.product(*map(range, taps)))).T


def _frobenius(real: tf.Tensor, imaginary: tf.Tensor | None) -> tf.Tensor:
    squares = tf.reduce_sum(tf.square(real), axis=[1, 2])
    if imaginary is not None:
        squares += tf.reduce_sum(tf.square(imaginary), axis=[1, 2])
    # The small number keeps logarithm and gradient finite where a kernel is zero.
    return tf.sqrt(squares + 1e-24)


def _gram(real: tf.Tensor, imaginary: tf.Tensor | None, wide: bool) -> tuple[tf.Tensor, tf.Tensor | None]:
    """`G'G` of complex matrices, or `GG'`."""

    def product(one: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
        return tf.matmul(one, other, transpose_a=not wide, transpose_b=wide)

    if imaginary is None:
        return product(real, real), None
    mixed = product(real, imaginary)
    mixed = tf.linalg.matrix_transpose(mixed) - mixed if wide else mixed - tf.linalg.matrix_transpose(mixed)
    return product(real, real) + product(imaginary, imaginary), mixed
