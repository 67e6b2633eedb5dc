"""Crops of photographs and the edges that were found in them: pairs without a download."""

from __future__ import annotations

from typing import Annotated, Any

from ganlab.bounds import Ge, Gt, Le, Lt
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.photo_patches import PhotoPatches


class Edges(PhotoPatches):
    """datasets.photo_patches, each crop to be made from its edges, one channel of -1 and 1.

    An edge is where the mean of the colours, in [-1, 1], has a Sobel gradient longer than a threshold; the task is that
    of "edges to photo" in Isola et al., "Image-to-image translation with conditional adversarial networks" (2017).
    """

    def __init__(
        self,
        *,
        side: Annotated[int, Ge(3), Le(128)] = 32,
        size: Annotated[int, Ge(1), Lt(2**31)] = 60_000,
        threshold: Annotated[float, Gt(0)] = 1.0,
    ) -> None:
        """Sets the size of the crops and what an edge is.

        Args:
            side: Their height and width in pixels.
            size: How many pairs there are.
            threshold: The length of a gradient from which on a pixel is an edge.
        """
        super().__init__(side=side, size=size)
        self.source_shape: tuple[int, ...] = (side, side, 1)
        self._threshold = threshold

    def sources(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The edges of the crops with these numbers, `(n, side, side, 1)` float32, 1 on edges and -1 elsewhere."""
        grey = tf.reduce_mean(self.examples(numbers, seed), axis=-1, keepdims=True)
        squares = tf.reduce_sum(tf.image.sobel_edges(grey) ** 2, axis=-1)
        return tf.where(squares > self._threshold**2, 1.0, -1.0)

    def fingerprint(self) -> dict[str, Any]:
        """That of the crops, and the threshold."""
        return {**super().fingerprint(), "threshold": self._threshold}
