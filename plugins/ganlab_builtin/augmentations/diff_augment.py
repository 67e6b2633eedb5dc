"""Differentiable augmentation of images: colour, translation and cutout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ganlab
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.augmentations.changes import along, chosen, each

_POLICY = ("color", "translation", "cutout")


class DiffAugment(ganlab.Augmentation):
    """Random colour, translation and cutout, the same kinds on real images and on samples.

    Zhao, Liu, Lin, Zhu and Han, "Differentiable augmentation for data-efficient GAN training" (2020), section 3 and
    appendix: brightness moved by up to 0.5, saturation scaled by up to 2 and contrast by 0.5 to 1.5 (of images in
    [-1, 1]); translation by up to an eighth of the side, zeros outside; one square of half the side set to zero.
    """

    def __init__(self, *, policy: str = "color,translation,cutout") -> None:
        """Chooses the changes.

        Args:
            policy: Which, in order, separated by commas: of "color", "translation" and "cutout".
        """
        self.policy = chosen("augmentations.diff_augment.policy", policy, _POLICY)

    def apply(self, x: tf.Tensor, state: Mapping[str, tf.Tensor], replica: ganlab.Replica) -> tf.Tensor:
        """The changed images, `(local_batch, height, width, channels)`."""
        if len(x.shape) != 4:
            raise ganlab.IncompatibleError(
                f"augmentations.diff_augment changes images, and the examples have the shape {tuple(x.shape[1:])}. "
                "Leave it out."
            )
        for part in self.policy:
            x = getattr(self, f"_{part}")(x, replica)
        return x

    def _color(self, x: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
        brightness, saturation, contrast = tf.split(replica.uniform([x.shape[0], 3]), 3, axis=1)
        x += each(brightness - 0.5)
        grey = tf.reduce_mean(x, axis=3, keepdims=True)
        x = (x - grey) * each(2.0 * saturation) + grey
        mean = tf.reduce_mean(x, axis=[1, 2, 3], keepdims=True)
        return (x - mean) * each(contrast + 0.5) + mean

    def _translation(self, x: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
        draws = replica.uniform([x.shape[0], 2])
        for axis in (1, 2):
            side = x.shape[axis]
            most = int(side / 8 + 0.5)
            by = tf.cast(draws[:, axis - 1] * (2 * most + 1), tf.int32) - most
            x = _shifted(x, by, axis)
        return x

    def _cutout(self, x: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
        draws = replica.uniform([x.shape[0], 2])
        inside: Any = None
        for axis in (1, 2):
            side = x.shape[axis]
            length = int(side * 0.5 + 0.5)
            centre = tf.cast(draws[:, axis - 1] * (side + 1 - length % 2), tf.int32)
            places = tf.range(side)[None, :] - (centre - length // 2)[:, None]
            within = tf.logical_and(places >= 0, places < length)
            within = within[:, :, None] if axis == 1 else within[:, None, :]
            inside = within if inside is None else tf.logical_and(inside, within)
        return x * tf.cast(tf.logical_not(inside), x.dtype)[..., None]


def _shifted(x: tf.Tensor, by: tf.Tensor, axis: int) -> tf.Tensor:
    """Each image moved along an axis by its own number of pixels, `(n,)`, zeros outside.

    A product with a matrix of zeros and ones for each image: exact, and any compiler differentiates it.
    """
    side = x.shape[axis]
    places = tf.range(side)
    moves = tf.cast(tf.equal(places[None, :, None] - by[:, None, None], places[None, None, :]), x.dtype)
    return along(x, axis, moves)
