"""Images as the Inception network takes them: four ways that published programs resize and scale them."""

from __future__ import annotations

from typing import Any

import ganlab
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.features.inception_2015 import SIDE

RESIZINGS = ("tensorflow", "pytorch", "antialiased", "clean")


def check_images(features: str, dataset: ganlab.Dataset) -> None:
    """Checks that a dataset is of grey or colour images; an IncompatibleError says that it is not."""
    shape = tuple(dataset.sample_shape)
    if len(shape) != 3 or shape[2] not in (1, 3):
        raise ganlab.IncompatibleError(
            f"features.{features} looks at images of 1 or 3 channels, and the examples of {type(dataset).__name__} "
            f"are of shape {shape}. Use @features.pixels()."
        )


def in_bytes(images: Any) -> Any:
    """Images in [-1, 1] as whole numbers from 0 to 255, float32, in three channels."""
    pixels = tf.round(tf.clip_by_value((images + 1.0) * 127.5, 0.0, 255.0))
    return tf.repeat(pixels, 3 // images.shape[-1], axis=-1)


def prepared(images: Any, resizing: str) -> Any:
    """Images of 299 x 299 pixels in the network's range.

    Values become whole numbers from 0 to 255 first, because published scores are of images that were saved.

    Args:
        images: float32 in [-1, 1], `(n, height, width, 1 or 3)`; grey ones are repeated in three channels.
        resizing: `tensorflow`, the one of the graph of 2015: bilinear without antialiasing, where the upper left
            corners of pixels coincide (`align_corners` and half pixel centers are both off), then `(x - 128) / 128`.
            `pytorch`, the one of the package pytorch-fid: bilinear without antialiasing, between the centers of pixels,
            then `x / 127.5 - 1`. `antialiased`: bilinear with antialiasing, then `(x - 128) / 128`. `clean`, that of
            clean-fid (Parmar et al., 2022): bicubic with antialiasing as Pillow does it in floating point, clipped to
            [0, 255] (cleanfid/resize.py:53 of clean-fid 0.1.35), then `(x - 128) / 128`.

    Returns:
        float32 `(n, 299, 299, 3)`.
    """
    pixels = in_bytes(images)
    if resizing == "tensorflow":
        resized = tf.compat.v1.image.resize_bilinear(
            pixels, (SIDE, SIDE), align_corners=False, half_pixel_centers=False
        )
        return (resized - 128.0) / 128.0
    method = "bicubic" if resizing == "clean" else "bilinear"
    resized = tf.image.resize(pixels, (SIDE, SIDE), method=method, antialias=resizing != "pytorch")
    if resizing == "clean":
        resized = tf.clip_by_value(resized, 0.0, 255.0)  # the filter has negative weights
    return resized / 127.5 - 1.0 if resizing == "pytorch" else (resized - 128.0) / 128.0
