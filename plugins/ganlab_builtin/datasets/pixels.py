"""Shared parts of image datasets: rows by number, the range [-1, 1], and squares of one size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ganlab.lazy import tensorflow as tf

# Of a picture: one of a few kilobytes may claim billions.
MOST_PIXELS = 1 << 26


def gather(
    read: Callable[[np.ndarray], np.ndarray], numbers: tf.Tensor, shape: tuple[int | None, ...], dtype: type[np.generic]
) -> tf.Tensor:
    """Rows that Python reads, as a tensor inside a graph.

    Args:
        read: Takes example numbers, int64 of the shape of `numbers`, and returns their rows.
        numbers: int64, `(n,)` or a scalar.
        shape: The static shape of the result; None where it varies.
        dtype: The dtype of the result, to which the rows are cast, so that other byte orders and float64 work too.

    Returns:
        A tensor of this shape and dtype.
    """

    def rows(wanted: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(read(wanted), dtype=dtype)

    # Not stateful: reading is a pure function of the numbers, and TensorFlow may treat it so.
    values = tf.numpy_function(rows, [numbers], tf.as_dtype(dtype), stateful=False)
    return tf.ensure_shape(values, shape)


def decoded(data: tf.Tensor) -> tf.Tensor:
    """The pixels of a PNG, JPEG, BMP or GIF file, of an animation the first, `(height, width, channels)` uint8.

    JPEG files by the exact transform, as other libraries decode them: TensorFlow's default is up to 31 levels off.

    Raises:
        tf.errors.InvalidArgumentError: It cannot be decoded, or has more than `MOST_PIXELS`.
    """
    head = tf.cast(tf.io.decode_raw(data, tf.uint8, fixed_length=24), tf.int64)

    def at_most(pixels: tf.Tensor) -> tf.Tensor:
        rule = f"A picture has more than {MOST_PIXELS:,} pixels. Shrink it."
        with tf.control_dependencies([tf.debugging.Assert(pixels <= MOST_PIXELS, [rule])]):
            return tf.identity(data)

    def jpeg() -> tf.Tensor:
        height, width, _ = tf.unstack(tf.cast(tf.io.extract_jpeg_shape(data), tf.int64))
        return tf.io.decode_jpeg(at_most(height * width), dct_method="INTEGER_ACCURATE")

    def other() -> tf.Tensor:  # a BMP file is as large as its picture
        png = _number(head[19:15:-1]) * _number(head[23:19:-1])
        gif = _number(head[6:8]) * _number(head[8:10])
        begins = [tf.reduce_all(head[:3] == [*first]) for first in (b"\x89PN", b"GIF")]
        pixels = tf.where(begins[0], png, tf.where(begins[1], gif, 0))
        return tf.io.decode_image(at_most(pixels), expand_animations=False)

    pixels = tf.cond(tf.reduce_all(head[:2] == [0xFF, 0xD8]), jpeg, other)
    return tf.ensure_shape(pixels, (None, None, None))


def _number(digits: tf.Tensor) -> tf.Tensor:
    """The number with these bytes, the least first."""
    return tf.reduce_sum(digits * 256 ** tf.range(digits.shape[0], dtype=tf.int64))


def from_bytes(images: tf.Tensor) -> tf.Tensor:
    """Bytes 0 to 255 as float32 in [-1, 1]; both ends are exact."""
    return tf.cast(images, tf.float32) / 127.5 - 1.0


def square(images: tf.Tensor, size: int, method: str = "bilinear") -> tf.Tensor:
    """The central square of images, brought to one size by antialiased interpolation.

    Args:
        images: float32 in [-1, 1], `(height, width, channels)` or `(n, height, width, channels)`; height and width
            may be unknown.
        size: The side of the result in pixels.
        method: A method of `tf.image.resize`.

    Returns:
        float32 in [-1, 1], `(size, size, channels)` or `(n, size, size, channels)`.
    """
    height, width = tf.unstack(tf.shape(images)[-3:-1])
    side = tf.minimum(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return resized(images[..., top : top + side, left : left + side, :], size, method)


def resized(images: tf.Tensor, size: int, method: str = "bilinear") -> tf.Tensor:
    """Images of any shape brought to squares of one size; arguments and result as of `square`."""
    images = tf.image.resize(images, (size, size), method=method, antialias=True)
    return tf.clip_by_value(images, -1.0, 1.0)  # weights may be negative, and sum to 1 up to rounding only


def random_square(image: tf.Tensor, area: float, uniform: tf.Tensor) -> tf.Tensor:
    """A square cut out of an image: its side is uniform up to the largest, and then its place.

    Args:
        image: `(height, width, channels)`, height and width unknown.
        area: The smallest share of the image's area. An image so long that no square has it is returned whole.
        uniform: Three numbers in [0, 1), which decide the side, the top and the left edge.
    """
    height, width = tf.unstack(tf.shape(image)[:2])
    most = tf.minimum(height, width)
    pixels = tf.cast(height * width, tf.float32)
    least = tf.cast(tf.math.ceil(tf.sqrt(area * pixels)), tf.int32)

    def drawn(number: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
        """One of `count` whole numbers from 0."""
        return tf.minimum(tf.cast(number * tf.cast(count, tf.float32), tf.int32), count - 1)

    def cut() -> tf.Tensor:
        side = least + drawn(uniform[0], most - least + 1)
        top, left = drawn(uniform[1], height - side + 1), drawn(uniform[2], width - side + 1)
        return image[top : top + side, left : left + side]

    return tf.cond(least <= most, cut, lambda: image)
