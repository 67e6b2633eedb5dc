"""Resizing as products of matrices, which can be differentiated any number of times.

TensorFlow's own resizing cannot be differentiated twice: a second derivative through bilinear interpolation is silently
cut off, and the other methods have none.
"""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ganlab.functional import resize, resizing_matrix
from ganlab.layers.base import Layer

_ROUNDING = 1 + 1e-6  # the matrices are float32


class _Sized(keras.layers.Layer):
    """A layer that stores the size of its images."""

    _space: tuple[int, int] | None = None

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self._space = _space(input_shape, self.data_format)
        super().build(input_shape)


@keras.saving.register_keras_serializable(package="ganlab")
class UpSampling2D(_Sized, keras.layers.UpSampling2D):
    """Enlarges images by whole factors.

    The same arguments and output as `keras.layers.UpSampling2D`, up to rounding. Returns the layer's compute dtype.
    """

    @property
    def lipschitz_constant(self) -> float | None:
        """The norm of the linear map; None before it is built on images of known size."""
        if self.interpolation == "nearest":
            return math.sqrt(math.prod(self.size))
        if self._space is None:
            return None
        height, width = (length * factor for length, factor in zip(self._space, self.size, strict=True))
        return _norm(self._space, (height, width), self.interpolation, False)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The enlarged images."""
        if self.interpolation == "nearest":  # repeats pixels, for which Keras' own layer is right
            return super().call(inputs)
        height, width = _space(inputs.shape, self.data_format) or (0, 0)
        size = (height * self.size[0], width * self.size[1])
        y = _resized(inputs, size, self.data_format, self.interpolation, False)
        return tf.cast(y, self.compute_dtype)


@keras.saving.register_keras_serializable(package="ganlab")
class Resizing(_Sized, Layer):
    """Resizes images to one size.

    The output is that of `keras.layers.Resizing`, up to rounding. Returns the layer's compute dtype.
    """

    arguments = "height width interpolation antialias data_format"

    def __init__(
        self,
        height: int,
        width: int,
        interpolation: str = "bilinear",
        antialias: bool = False,
        data_format: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Chooses the size.

        Args:
            height: The height of the output, in pixels.
            width: The width of the output, in pixels.
            interpolation: "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian" or
                "mitchellcubic", as in `tf.image.resize`.
            antialias: Whether to widen the kernel where images are made smaller.
            data_format: "channels_last" or "channels_first"; None for Keras' own setting.
            **kwargs: Keras' own, for example `name`.
        """
        super().__init__(**kwargs)
        self.height, self.width = height, width
        self.interpolation, self.antialias = interpolation, bool(antialias)
        self.data_format = data_format or keras.config.image_data_format()
        resizing_matrix(2, 2, interpolation, self.antialias)  # refuses an unknown interpolation

    @property
    def lipschitz_constant(self) -> float | None:
        """The norm of the linear map; None before it is built on images of known size."""
        if self._space is None:
            return None
        return _norm(self._space, (self.height, self.width), self.interpolation, self.antialias)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The resized images."""
        size = (self.height, self.width)
        y = _resized(inputs, size, self.data_format, self.interpolation, self.antialias)
        return tf.cast(y, self.compute_dtype)

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """The input's shape with the new height and width."""
        if self.data_format == "channels_first":
            return (*input_shape[:2], self.height, self.width)
        return (input_shape[0], self.height, self.width, input_shape[3])


def _resized(x: tf.Tensor, size: tuple[int, int], data_format: str, interpolation: str, antialias: bool) -> tf.Tensor:
    if data_format == "channels_first":
        y = resize(tf.transpose(x, [0, 2, 3, 1]), size, interpolation, antialias=antialias)
        return tf.transpose(y, [0, 3, 1, 2])
    return resize(x, size, interpolation, antialias=antialias)


def _space(shape: Any, data_format: str) -> tuple[int, int] | None:
    height, width = shape[2:] if data_format == "channels_first" else shape[1:3]
    return None if height is None or width is None else (int(height), int(width))


def _norm(space: tuple[int, int], size: tuple[int, int], interpolation: str, antialias: bool) -> float:
    norms = [
        np.linalg.norm(resizing_matrix(before, after, interpolation, antialias).astype(np.float64), 2)
        for before, after in zip(space, size, strict=True)
    ]
    return float(math.prod(norms)) * _ROUNDING
