"""Pairs of distributions whose Wasserstein-1 distance is known, to compare a critic's estimate with."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np

import ganlab
from ganlab import fingerprints, functional
from ganlab.bounds import Ge, Gt, Le
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.checks import refusal


class TwoImages(ganlab.Dataset):
    """One image, a bright square on a dark ground; its counterpart is the dark ground alone.

    Between two points the Wasserstein-1 distance is that of the points. The square's side is the whole part of
    `side * sqrt(fraction)`; with the defaults it is 35 pixels, each 1 apart from the ground: `sqrt(35 * 35) = 35`, the
    pair that the library deel-lip demonstrates its critics on (Serrurier et al., "Achieving robustness in
    classification using optimal transport with hinge regularization", 2021).

    Attributes:
        wasserstein: The exact distance between the image and its counterpart.
    """

    def __init__(
        self,
        *,
        side: Annotated[int, Ge(1), Le(10_000)] = 64,
        fraction: Annotated[float, Gt(0), Le(1)] = 0.3,
        dark: Annotated[float, Ge(-1), Le(1)] = 0.0,
        bright: Annotated[float, Ge(-1), Le(1)] = 1.0,
    ) -> None:
        """Draws the images.

        Args:
            side: The side of the images in pixels.
            fraction: The fraction of the image's area that the square covers, up to rounding.
            dark: The value of the ground, in [-1, 1].
            bright: The value of the square, in [-1, 1]; that of the ground gives the counterpart itself.

        Raises:
            ConfigError: A value is out of its range, or the square would have no pixel.
        """
        if side * math.sqrt(fraction) < 1.0:
            raise refusal("two_images", "fraction", fraction, "must be large enough for one pixel.")
        square = int(side * math.sqrt(fraction))
        start = (side - square) // 2
        self._ground = np.full((side, side, 1), dark, np.float32)
        self._image = self._ground.copy()
        self._image[start : start + square, start : start + square] = bright
        self.sample_shape = (side, side, 1)
        self.wasserstein = square * abs(bright - dark)

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The image with the square, repeated: `(n, side, side, 1)` float32."""
        return tf.tile(self._image[None], [tf.shape(numbers)[0], 1, 1, 1])

    def counterpart(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The ground alone, repeated: `(n, side, side, 1)` float32."""
        return tf.tile(self._ground[None], [tf.shape(numbers)[0], 1, 1, 1])

    def fingerprint(self) -> dict[str, Any]:
        """A hash of the image."""
        return {"image": fingerprints.of_array(self._image)}


class TranslatedGaussians(ganlab.Dataset):
    """A Gaussian; its counterpart is the same one centred at zero.

    Translating a distribution by s costs |s| in Wasserstein-1 whatever the distribution: the map x -> x + s has that
    cost, and the 1-Lipschitz function `<x, s> / |s|` attains it.

    Attributes:
        wasserstein: The exact distance from the counterpart, `distance`.
    """

    def __init__(
        self,
        *,
        dims: Annotated[int, Ge(1), Le(100_000)] = 2,
        distance: Annotated[float, Ge(0)] = 3.0,
        std: Annotated[float, Gt(0)] = 1.0,
    ) -> None:
        """Places the Gaussian.

        Args:
            dims: The dimension of the space.
            distance: How far from zero its mean lies, along the diagonal; 0 gives the counterpart itself.
            std: Its standard deviation along each axis.
        """
        self._mean = np.full(dims, distance / math.sqrt(dims), np.float32)
        self._std = std
        self.sample_shape = (dims,)
        self.wasserstein = float(distance)

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The samples with these numbers, `(n, dims)` float32."""
        return self._mean + self.counterpart(numbers, seed)

    def counterpart(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The samples with these numbers of the Gaussian at zero, `(n, dims)` float32: those of `examples`, moved."""
        return self._std * functional.example_normal(numbers, self.sample_shape[0], seed)

    def fingerprint(self) -> dict[str, Any]:
        """The parameters of the distribution: samples are functions of these and of the seed."""
        return {"shape": list(self.sample_shape), "distance": self.wasserstein, "std": self._std}
