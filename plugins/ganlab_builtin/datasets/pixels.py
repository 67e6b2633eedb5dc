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

    def begins(first: bytes) -> tf.Tensor:
        return tf.equal(tf.strings.substr(data, 0, len(first)), first)

    def at_most(sides: tf.Tensor) -> tf.Tensor:
        rule = f"A picture has more than {MOST_PIXELS:,} pixels. Shrink it."
        small = tf.reduce_prod(tf.cast(sides, tf.int64)) <= MOST_PIXELS
        with tf.control_dependencies([tf.debugging.Assert(small, [rule])]):
            return tf.identity(data)

    def jpeg() -> tf.Tensor:
        return tf.io.decode_jpeg(at_most(tf.io.extract_jpeg_shape(data)[:2]), dct_method="INTEGER_ACCURATE")

    def other() -> tf.Tensor:
        """A PNG file, a GIF file, or a BMP file, which is as large as its picture."""

        def sides(at: int, kind: tf.DType, *, little: bool = True) -> tf.Tensor:
            numbers = tf.io.decode_raw(tf.strings.substr(data, at, 2 * kind.size), kind, little_endian=little)
            return tf.cast(tf.ensure_shape(numbers, (2,)), tf.int64)

        def gif_or_bmp() -> tf.Tensor:
            return tf.cond(begins(b"GIF"), lambda: sides(6, tf.uint16), lambda: tf.zeros([2], tf.int64))

        size = tf.cond(begins(b"\x89PNG"), lambda: sides(16, tf.int32, little=False), gif_or_bmp)
        return tf.io.decode_image(at_most(size), expand_animations=False)

    return tf.ensure_shape(tf.cond(begins(b"\xff\xd8"), jpeg, other), (None, None, None))


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
