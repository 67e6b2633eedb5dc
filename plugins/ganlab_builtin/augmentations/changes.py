"""Changes of single images, each to those of a batch that are marked: `(images, on, replica) -> images`.

Images are `(n, height, width, channels)`, and `on` is `(n,)` bool. Those that move pixels interpolate linearly along
each axis, and mirror what lies outside. All are differentiable by the images, made of operations that every compiler
knows.
"""

from __future__ import annotations

import math
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
    """By a whole number of pixels along each axis, up to an eighth of the side."""
    draws = 2.0 * replica.uniform([x.shape[0], 2]) - 1.0
    for axis in (1, 2):
        by = tf.where(on, tf.round(draws[:, axis - 1] * (x.shape[axis] / 8)), 0.0)
        x = _resampled(x, axis, by, tf.ones_like(by))
    return x


def scale(x: tf.Tensor, on: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
    """By `2^(0.2 n)` about the middle."""
    factor = tf.where(on, tf.pow(2.0, 0.2 * replica.normal([x.shape[0]])), 1.0)
    for axis in (1, 2):
        x = _resampled(x, axis, tf.zeros_like(factor), factor)
    return x


def turn(x: tf.Tensor, on: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
    """By any angle about the middle, anticlockwise."""
    angle = tf.where(on, math.pi * (2.0 * replica.uniform([x.shape[0]]) - 1.0), 0.0)
    cos, sin = (function(angle)[:, None, None] for function in (tf.cos, tf.sin))
    down, across = (tf.range(side, dtype=x.dtype) - (side - 1) / 2 for side in x.shape[1:3])
    down, across = down[None, :, None], across[None, None, :]
    return _interpolated(x, cos * down + sin * across, cos * across - sin * down)


def stretch(x: tf.Tensor, on: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
    """By `2^(0.2 n)` across and by its inverse down, about the middle."""
    factor = tf.where(on, tf.pow(2.0, 0.2 * replica.normal([x.shape[0]])), 1.0)
    x = _resampled(x, 1, tf.zeros_like(factor), 1.0 / factor)
    return _resampled(x, 2, tf.zeros_like(factor), factor)


def shift(x: tf.Tensor, on: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
    """By an eighth of the side times n along each axis, with fractions of a pixel."""
    draws = replica.normal([x.shape[0], 2])
    for axis in (1, 2):
        by = tf.where(on, draws[:, axis - 1] * (x.shape[axis] / 8), 0.0)
        x = _resampled(x, axis, by, tf.ones_like(by))
    return x


def brightness(x: tf.Tensor, on: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
    """Plus `0.2 n`, in [-1, 1] from black to white."""
    return x + each(tf.where(on, 0.2 * replica.normal([x.shape[0]]), 0.0))


def contrast(x: tf.Tensor, on: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
    """Times `2^(0.5 n)`."""
    return x * each(tf.where(on, tf.pow(2.0, 0.5 * replica.normal([x.shape[0]])), 1.0))


def invert(x: tf.Tensor, on: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
    """The channels' mean times -1, half of those marked."""
    on = tf.logical_and(on, replica.uniform([x.shape[0]]) < 0.5)
    return x - tf.where(each(on), 2.0 * tf.reduce_mean(x, axis=3, keepdims=True), 0.0)


def hue(x: tf.Tensor, on: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
    """Three channels turned by any angle about the axis of greys; others stay as they are."""
    if x.shape[3] != 3:
        return x
    angle = each(math.pi * (2.0 * replica.uniform([x.shape[0]]) - 1.0))
    # Rodrigues' formula for the axis (1, 1, 1) / sqrt(3), whose product with a colour is a difference of neighbours.
    product = (tf.roll(x, 1, axis=3) - tf.roll(x, -1, axis=3)) / math.sqrt(3.0)
    grey = tf.reduce_mean(x, axis=3, keepdims=True)
    return tf.where(each(on), grey + tf.cos(angle) * (x - grey) + tf.sin(angle) * product, x)


def saturation(x: tf.Tensor, on: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
    """The channels' distance from their mean times `2^n`."""
    factor = each(tf.pow(2.0, replica.normal([x.shape[0]])))
    grey = tf.reduce_mean(x, axis=3, keepdims=True)
    return tf.where(each(on), grey + factor * (x - grey), x)


def cutout(x: tf.Tensor, on: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
    """Zeros in a rectangle of half of each side, about any point."""
    centre = replica.uniform([x.shape[0], 2])
    inside = on[:, None, None]
    for axis in (1, 2):
        places = (tf.range(x.shape[axis], dtype=tf.float32) + 0.5) / x.shape[axis]
        within = tf.abs(places[None, :] - centre[:, axis - 1, None]) < 0.25
        inside = tf.logical_and(inside, within[:, :, None] if axis == 1 else within[:, None, :])
    return tf.where(inside[..., None], tf.zeros_like(x), x)


CHANGES = {
    "flip": flip,
    "rotate": rotate,
    "translate": translate,
    "scale": scale,
    "turn": turn,
    "stretch": stretch,
    "shift": shift,
    "brightness": brightness,
    "contrast": contrast,
    "invert": invert,
    "hue": hue,
    "saturation": saturation,
    "cutout": cutout,
}


def alone(given: tf.Tensor | tuple[tf.Tensor, object], where: str) -> tf.Tensor:
    """Changed examples without side outputs, which nothing inside another component takes."""
    if isinstance(given, tuple):
        raise ganlab.IncompatibleError(
            f"{where} has side outputs, which no critic gets from inside there. Put it in experiment.augmentations."
        )
    return given


def chosen(setting: str, text: str, known: Collection[str]) -> tuple[str, ...]:
    """The names in a text, in order, separated by commas; one or more, all of them known."""
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if not names or not set(names) <= set(known):
        raise ganlab.ConfigError(f"{setting} = {text!r} must name some of {', '.join(known)}, separated by commas.")
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
    sources = _mirrored((places[None, :] - by[:, None] - middle) / factor[:, None] + middle, side)
    weights = tf.nn.relu(1.0 - tf.abs(sources[:, :, None] - places[None, None, :]))
    return along(x, axis, weights)


def _interpolated(x: tf.Tensor, down: tf.Tensor, across: tf.Tensor) -> tf.Tensor:
    """Each image at places relative to its middle, each `(n, height, width)`, by linear interpolation."""
    height, width = x.shape[1:3]
    down, across = _mirrored(down + (height - 1) / 2, height), _mirrored(across + (width - 1) / 2, width)
    top, left = tf.floor(down), tf.floor(across)
    pixels, total = tf.reshape(x, [x.shape[0], height * width, x.shape[3]]), tf.zeros_like(x)
    for i in (0, 1):
        for j in (0, 1):
            row, column = tf.minimum(top + i, height - 1), tf.minimum(left + j, width - 1)
            number = tf.cast(row * width + column, tf.int32)
            weight = (1.0 - tf.abs(down - top - i)) * (1.0 - tf.abs(across - left - j))
            total += weight[..., None] * tf.gather(pixels, number, axis=1, batch_dims=1)
    return total


def _mirrored(places: tf.Tensor, side: int) -> tf.Tensor:
    """Places on an axis, those outside reflected at the first and the last pixel as often as it takes."""
    if side == 1:
        return tf.zeros_like(places)
    last = float(side - 1)
    return last - tf.abs(tf.math.floormod(places, 2.0 * last) - last)
