"""Changes of single images, each to those of a batch that are marked: `(images, on, replica) -> images`.

Images are `(n, height, width, channels)`, and `on` is `(n,)` bool. All are differentiable by the images, made of
operations that every compiler knows.
"""

from __future__ import annotations

from collections.abc import Collection

import ganlab
from ganlab.lazy import tensorflow as tf


def flip(x: tf.Tensor, on: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
    """From left to right, half of those marked."""
    on = tf.logical_and(on, replica.uniform([x.shape[0]]) < 0.5)
    return tf.where(each(on), tf.reverse(x, axis=[2]), x)


def rotate(x: tf.Tensor, on: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
    """By 0, 90, 180 or 270 degrees, anticlockwise; by 0 or 180 where images are not square."""
    square = x.shape[1] == x.shape[2]
    turns = [lambda x: tf.reverse(x, axis=[1, 2])]
    if square:
        turns = [lambda x: tf.reverse(tf.transpose(x, [0, 2, 1, 3]), axis=[1]), turns[0]]
        turns.append(lambda x: tf.reverse(tf.transpose(x, [0, 2, 1, 3]), axis=[2]))
    which = tf.cast(replica.uniform([x.shape[0]]) * (len(turns) + 1), tf.int32)
    rotated = x
    for i, turn in enumerate(turns, start=1):
        rotated = tf.where(each(tf.logical_and(on, tf.equal(which, i))), turn(x), rotated)
    return rotated


def translate(x: tf.Tensor, on: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
    """By a whole number of pixels along each axis, up to an eighth of the side; zeros come in."""
    draws = 2.0 * replica.uniform([x.shape[0], 2]) - 1.0
    for axis in (1, 2):
        by = tf.where(on, tf.round(draws[:, axis - 1] * (x.shape[axis] / 8)), 0.0)
        x = _resampled(x, axis, by, tf.ones_like(by))
    return x


def scale(x: tf.Tensor, on: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
    """By `2^(0.2 n)` about the middle, with linear interpolation along each axis; zeros come in."""
    factor = tf.where(on, tf.pow(2.0, 0.2 * replica.normal([x.shape[0]])), 1.0)
    for axis in (1, 2):
        x = _resampled(x, axis, tf.zeros_like(factor), factor)
    return x


def brightness(x: tf.Tensor, on: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
    """Plus `0.2 n`, in [-1, 1] from black to white."""
    return x + each(tf.where(on, 0.2 * replica.normal([x.shape[0]]), 0.0))


def contrast(x: tf.Tensor, on: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
    """Times `2^(0.5 n)`."""
    return x * each(tf.where(on, tf.pow(2.0, 0.5 * replica.normal([x.shape[0]])), 1.0))


def saturation(x: tf.Tensor, on: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
    """The channels' distance from their mean times `2^n`."""
    factor = each(tf.where(on, tf.pow(2.0, replica.normal([x.shape[0]])), 1.0))
    grey = tf.reduce_mean(x, axis=3, keepdims=True)
    return grey + factor * (x - grey)


CHANGES = {
    "flip": flip,
    "rotate": rotate,
    "translate": translate,
    "scale": scale,
    "brightness": brightness,
    "contrast": contrast,
    "saturation": saturation,
}


def chosen(setting: str, given: str, known: Collection[str]) -> tuple[str, ...]:
    """The names in a text, in order, separated by commas.

    Raises:
        ConfigError: There are none, or one is not known.
    """
    names = tuple(part.strip() for part in given.split(",") if part.strip())
    if not names or not set(names) <= set(known):
        raise ganlab.ConfigError(f"{setting} = {given!r} must name some of {', '.join(known)}, separated by commas.")
    return names


def along(x: tf.Tensor, axis: int, weights: tf.Tensor) -> tf.Tensor:
    """Each image multiplied along an axis, 1 or 2, by a matrix of its own, `(n, after, before)`."""
    return tf.einsum("nij,njwc->niwc" if axis == 1 else "nij,nhjc->nhic", weights, x)


def each(x: tf.Tensor) -> tf.Tensor:
    """A number for each image, `(n,)`, in the shape that images multiply with."""
    return tf.reshape(x, [-1, 1, 1, 1])


def _resampled(x: tf.Tensor, axis: int, by: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
    """Each image enlarged about its middle along an axis, then moved, by its own numbers, `(n,)`.

    A product with a matrix for each image, whose rows have the weights of linear interpolation.
    """
    side = x.shape[axis]
    places, middle = tf.range(side, dtype=x.dtype), (side - 1) / 2
    sources = (places[None, :] - by[:, None] - middle) / factor[:, None] + middle
    weights = tf.nn.relu(1.0 - tf.abs(sources[:, :, None] - places[None, None, :]))
    return along(x, axis, weights)
