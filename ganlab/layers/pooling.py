"""Layers that make images smaller and have a Lipschitz constant of one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from ganlab.layers.almost_orthogonal import known_channels, pair_of
from ganlab.layers.base import Layer

_TINY = 1e-12  # under the square root: the norm with one more coordinate of 1e-6, so the constant stays


class _Windows(Layer):
    """Windows side by side, each `(height, width)` pixels; rows and columns that fill no window are left out."""

    arguments = "pool_size"
    lipschitz_constant = 1.0  # each number lies in one window at most, and each window's map has norm one

    def __init__(self, pool_size: int | Sequence[int] = 2, **kwargs: Any) -> None:
        """Args: pool_size: Height and width of a window, or one number for both; kwargs: Keras' own, like `name`."""
        super().__init__(**kwargs)
        self.pool_size = pair_of(pool_size)
        if min(self.pool_size) < 1:
            raise ValueError(f"ganlab.layers.{type(self).__name__}(pool_size={pool_size!r}): it must be at least 1.")

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Checks the shape."""
        known_channels(self, input_shape, 4)
        super().build(input_shape)

    def _scaled(self, x: tf.Tensor, factor: float) -> tf.Tensor:
        mean = tf.nn.avg_pool2d(x, self.pool_size, self.pool_size, "VALID")
        return tf.constant(factor, x.dtype) * mean

    def compute_output_shape(self, input_shape: Sequence[int | None]) -> tuple[int | None, ...]:
        """`(n, height // pool height, width // pool width, channels)`."""
        sides = zip(input_shape[1:3], self.pool_size, strict=True)
        return (input_shape[0], *(None if n is None else n // pool for n, pool in sides), input_shape[3])


@keras.saving.register_keras_serializable(package="ganlab")
class ScaledAveragePooling2D(_Windows):
    """The average of each window times the square root of its size: the projection on images constant in windows.

    Its norm is one, where `keras.layers.AveragePooling2D` divides the norm of a smooth image by that square root.
    """

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The scaled averages."""
        return self._scaled(inputs, math.sqrt(math.prod(self.pool_size)))


@keras.saving.register_keras_serializable(package="ganlab")
class L2NormPooling2D(_Windows):
    """The Euclidean norm of each window, channel by channel: `sqrt(sum x^2)`.

    Boureau, Ponce and LeCun, "A theoretical analysis of feature pooling in visual recognition" (2010). It keeps the
    norm of an image, and its gradient has norm one in every window that is not zero.
    """

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The norms."""
        # Squares of half precision lose half of its range.
        x = inputs if inputs.dtype == tf.float64 else tf.cast(inputs, tf.float32)
        return tf.cast(tf.sqrt(self._scaled(tf.square(x), math.prod(self.pool_size)) + _TINY), inputs.dtype)


@keras.saving.register_keras_serializable(package="ganlab")
class InvertibleDownsampling(Layer):
    """The pixels of each window as channels of one: `(n, h, w, c)` to `(n, h / size, w / size, size^2 c)`.

    Jacobsen, Smeulders and Oyallon, "i-RevNet: deep invertible networks" (2018), section 3.1; also called pixel
    unshuffle or space to depth. It moves numbers and loses none, so it keeps all distances. Channel
    `(i * size + j) * c + k` of a window is channel k of its pixel `(i, j)`.
    """

    arguments = "size"
    lipschitz_constant = 1.0  # a permutation

    def __init__(self, size: int = 2, **kwargs: Any) -> None:
        """Args: size: Side of a window, at least 2; kwargs: Keras' own, for example `name`."""
        super().__init__(**kwargs)
        if not isinstance(size, int) or size < 2:
            raise ValueError(f"ganlab.layers.InvertibleDownsampling(size={size!r}): it must be at least 2.")
        self.size = size

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Checks that windows fill the images."""
        known_channels(self, input_shape, 4)
        if any(n is not None and n % self.size for n in input_shape[1:3]):
            raise ValueError(
                f"ganlab.layers.InvertibleDownsampling(size={self.size}) got the shape {tuple(input_shape)}; height "
                "and width must be multiples of size. Choose another size, or add keras.layers.ZeroPadding2D before it."
            )
        super().build(input_shape)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The smaller images."""
        return tf.nn.space_to_depth(inputs, self.size)

    def compute_output_shape(self, input_shape: Sequence[int | None]) -> tuple[int | None, ...]:
        """`(n, h / size, w / size, size^2 c)`."""
        space = (None if n is None else n // self.size for n in input_shape[1:3])
        return (input_shape[0], *space, self.size**2 * int(input_shape[3] or 0))
