"""Convolutions that keep norms: the exponential of a skew one, and products of orthogonal projectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from ganlab import functional
from ganlab.layers.almost_orthogonal import _AlmostOrthogonal, known_channels, pair_of
from ganlab.layers.sll import MARGIN


class _Orthogonal(_AlmostOrthogonal):
    """Sizes, and as many channels as the wider of the input and the output has."""

    arguments = "filters kernel_size"

    def __init__(
        self,
        filters: int,
        kernel_size: int | Sequence[int],
        use_bias: bool,
        kernel_initializer: Any,
        bias_initializer: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(use_bias, kernel_initializer, bias_initializer, **kwargs)
        self.filters, self.kernel_size = filters, pair_of(kernel_size)
        if not isinstance(filters, int) or filters < 1 or min(self.kernel_size) < 1:
            raise ValueError(
                f"ganlab.layers.{type(self).__name__}(filters={filters!r}, kernel_size={kernel_size!r}): each must be "
                "at least 1."
            )

    def _create(self, shape: tuple[int, ...]) -> None:
        self.kernel = self.add_weight(shape=shape, initializer=self.kernel_initializer, name="kernel", autocast=False)
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(shape=(self.filters,), initializer=self.bias_initializer, name="bias")

    def compute_output_shape(self, input_shape: Sequence[int | None]) -> tuple[int | None, ...]:
        """`(n, height, width, filters)`."""
        return (*input_shape[:3], self.filters)


@keras.saving.register_keras_serializable(package="ganlab")
class SkewConv2D(_Orthogonal):
    """A convolution of norm at most one, which nearly keeps norms: the exponential series of a skew convolution.

    Singla and Feizi, "Skew orthogonal convolutions" (2021), section 4: `exp(L) x = x + L x + L^2 x / 2! + ...`, where L
    is half the difference of the convolution by `kernel` and its transpose. With zero padding, L is skew-symmetric for
    images of any size, so its exponential is orthogonal. Here the series has `terms` terms, `terms - 1` convolutions.
    L is divided by an upper bound of its norm where that exceeds one: the square root of the number of taps times the
    norm of the kernel as a matrix `(taps * channels, channels)`, in turn bounded by Gram iteration. If nu bounds the
    norm after that, the series is at most `nu^terms / terms!` from the exponential (theorem 3), and it is divided by
    one plus that. So no vector gets longer, and with `r = 1 / terms!` none shorter than by `(1 - r) / (1 + r)`.

    The kernel has as many channels as the wider of the input and the output. As in the paper, a narrower input is
    filled up with zeros, and of a narrower output the first channels are kept. Takes images
    `(n, height, width, channels)`.
    """

    arguments = "terms"

    def __init__(
        self,
        filters: int,
        kernel_size: int | Sequence[int] = 3,
        terms: int = 8,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        """Sets the sizes.

        Args:
            filters: Channels of the output.
            kernel_size: Height and width of the kernel, odd numbers, or one number for both.
            terms: How many terms of the series.
            use_bias: Whether to add a bias to each channel.
            kernel_initializer: How the kernel starts; the larger it is, up to a bound of one, the further from the
                identity.
            bias_initializer: How the bias starts.
            **kwargs: Keras' own, for example `name`.
        """
        super().__init__(filters, kernel_size, use_bias, kernel_initializer, bias_initializer, **kwargs)
        self.terms = terms
        if not all(length % 2 for length in self.kernel_size):
            raise ValueError(f"ganlab.layers.SkewConv2D(kernel_size={kernel_size!r}): both sides must be odd.")
        if not isinstance(terms, int) or terms < 2:
            raise ValueError(f"ganlab.layers.SkewConv2D(terms={terms!r}): it must be at least 2.")

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Creates the weights."""
        channels = max(known_channels(self, input_shape, 4), self.filters)
        self._create((*self.kernel_size, channels, channels))

    def effective_kernel(self) -> tf.Tensor:
        """The kernel of L, of the kernel's shape and dtype."""
        return self._skew()[0]

    def _skew(self) -> tuple[tf.Tensor, tf.Tensor]:
        """The kernel of L, and a bound of the norm of L that is at most one."""
        kernel = tf.convert_to_tensor(self.kernel)
        skew = (kernel - tf.transpose(kernel[::-1, ::-1], [0, 1, 3, 2])) / 2
        squared = math.prod(self.kernel_size) * functional.squared_norm_bound(functional.as_matrix(skew))
        return skew * tf.math.rsqrt(tf.maximum(squared, 1.0)), tf.sqrt(tf.minimum(squared, 1.0))

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The feature maps, `(n, height, width, filters)`."""
        skew, norm = self._skew()
        factor = 1.0 / ((1.0 + norm**self.terms / math.factorial(self.terms)) * MARGIN)
        x = tf.pad(inputs, [[0, 0], [0, 0], [0, 0], [0, skew.shape[-1] - inputs.shape[-1]]])
        kernel, x = tf.cast(skew, x.dtype), x * tf.cast(factor, x.dtype)
        y = x
        for j in reversed(range(1, self.terms)):
            y = x + tf.nn.conv2d(y, kernel, 1, "SAME") / j
        return self._with_bias(y[..., : self.filters])


@keras.saving.register_keras_serializable(package="ganlab")
class OrthogonalConv2D(_Orthogonal):
    """An orthogonal convolution: its kernel is a product, in the sense of convolution, of projectors on channels.

    Li, Haque, Anil, Lucas, Grosse and Jacobsen, "Preventing gradient attenuation in Lipschitz constrained convolutional
    networks" (2019), section 4, after Xiao et al., "Dynamical isometry and a mean field theory of CNNs" (2018),
    algorithm 1: an orthogonal matrix H between channels, then for each step of the kernel in height or width a
    convolution by the two taps `P` and `I - P`, where `P = R R'` and R has half as many orthonormal columns as there
    are channels. With n channels, those of the wider of the input and the output, `kernel` is
    `(n, n + (height + width - 2) (n // 2))`: Cayley's transform of its first n columns is H, and of each further
    `n // 2` an R. A narrower input or output has the first channels.

    With `padding="circular"`, where images continue on their opposite side, every singular value is one up to rounding
    (at most 3e-4 below with 512 channels): no gradient gets shorter, except by what fewer filters drop. With "same",
    zeros beyond the border, they are at most one. Takes images `(n, height, width, channels)`.
    """

    arguments = "padding"

    def __init__(
        self,
        filters: int,
        kernel_size: int | Sequence[int] = 3,
        padding: str = "circular",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        """Sets the sizes.

        Args:
            filters: Channels of the output.
            kernel_size: Height and width of the kernel, or one number for both.
            padding: "circular" or, with zeros, "same".
            use_bias: Whether to add a bias to each channel.
            kernel_initializer: How the blocks of columns start, before they are made orthonormal.
            bias_initializer: How the bias starts.
            **kwargs: Keras' own, for example `name`.
        """
        super().__init__(filters, kernel_size, use_bias, kernel_initializer, bias_initializer, **kwargs)
        if padding not in ("circular", "same"):
            raise ValueError(f"ganlab.layers.OrthogonalConv2D(padding={padding!r}): it must be 'circular' or 'same'.")
        self.padding = padding
        self._borders = [[(length - 1) // 2, length // 2] for length in self.kernel_size]

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Creates the weights."""
        self._inputs = known_channels(self, input_shape, 4)
        sides = zip(input_shape[1:3], self._borders, strict=True)
        if self.padding == "circular" and any(side is not None and side < border[1] for side, border in sides):
            raise ValueError(
                f"ganlab.layers.OrthogonalConv2D(kernel_size={self.kernel_size}) got the shape {tuple(input_shape)}; "
                "height and width must be at least half of the kernel's, rounded down, with padding='circular'."
            )
        channels = max(self._inputs, self.filters)
        self._create((channels, channels + (sum(self.kernel_size) - 2) * (channels // 2)))

    def effective_kernel(self) -> tf.Tensor:
        """The kernel of the convolution, `(*kernel_size, inputs, filters)`, of the kernel's dtype."""
        columns = tf.convert_to_tensor(self.kernel)
        channels, (height, width) = columns.shape[0], self.kernel_size
        matrix = functional.orthonormal(columns[:, :channels])
        bases = tf.reshape(columns[:, channels:], [channels, height + width - 2, channels // 2])
        bases = functional.orthonormal(tf.transpose(bases, [1, 0, 2]))
        kernel = matrix[None, None, : self._inputs] / MARGIN
        # Height and width in turn, while both have steps left.
        steps = sorted([(i, 0) for i in range(height - 1)] + [(i, 1) for i in range(width - 1)])
        for basis, (_, axis) in zip(tf.unstack(bases, len(steps)), steps, strict=True):
            kernel = _extended(kernel, basis, axis)
        return kernel[..., : self.filters]

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The feature maps, `(n, height, width, filters)`."""
        kernel = tf.cast(self.effective_kernel(), inputs.dtype)
        if self.padding == "same":
            return self._with_bias(tf.nn.conv2d(inputs, kernel, 1, "SAME"))
        return self._with_bias(tf.nn.conv2d(_continued(inputs, self._borders), kernel, 1, "VALID"))


def _extended(kernel: tf.Tensor, basis: tf.Tensor, axis: int) -> tf.Tensor:
    """The kernel after one by the taps `R R'` and `I - R R'` along an axis, `(height, width, inputs, outputs)`."""
    # As one product of matrices: one of rank four by a matrix can crash TensorFlow 2.21, in oneDNN.
    projected = tf.matmul(tf.matmul(functional.as_matrix(kernel), basis), basis, transpose_b=True)
    projected = tf.reshape(projected, kernel.shape)
    after, before = ([[int(i == axis) * first, int(i == axis) * (1 - first)] for i in range(4)] for first in (0, 1))
    return tf.pad(projected, after) + tf.pad(kernel - projected, before)


def _continued(x: tf.Tensor, borders: Sequence[Sequence[int]]) -> tf.Tensor:
    """Images with borders before and after them, of what is on the opposite side."""
    for axis, (before, after) in enumerate(borders, 1):
        space = [slice(None)] * axis
        first, last = (*space, slice(None, after)), (*space, slice(tf.shape(x)[axis] - before, None))
        x = tf.concat([x[last], x, x[first]], axis)
    return x
