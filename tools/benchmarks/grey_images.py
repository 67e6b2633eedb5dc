"""A plugin in one file: images of any shape with any number of classes, for data sets that are not here."""

from __future__ import annotations

from typing import Annotated

import ganlab
from ganlab.bounds import Ge, Le, Lt
from ganlab.lazy import tensorflow as tf


class GreyImages(ganlab.Dataset):
    """Images of one shade of grey each, made in the graph.

    A compiled step takes its examples as arguments, so only their shape and the number of classes matter to it.
    """

    def __init__(
        self,
        *,
        side: Annotated[int, Ge(1), Le(1024)] = 32,
        channels: Annotated[int, Ge(1), Le(4)] = 3,
        classes: Annotated[int, Ge(1), Lt(2**31)] | None = None,
        size: Annotated[int, Ge(1), Lt(2**31)] = 60_000,
    ) -> None:
        """Chooses the shape.

        Args:
            side: The height and width of the images.
            channels: Their channels.
            classes: How many classes there are; None for images without labels.
            size: How many examples there are.
        """
        self.sample_shape = (side, side, channels)
        self.size, self.classes = size, classes

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The images with these numbers, `(n, side, side, channels)` float32; the seed is not used."""
        shade = tf.cast(numbers % 256, tf.float32) / 127.5 - 1.0
        return tf.broadcast_to(shade[:, None, None, None], [numbers.shape[0], *self.sample_shape])

    def labels(self, numbers: tf.Tensor) -> tf.Tensor:
        """The classes, which take turns, `(n,)` int64."""
        return numbers % self.classes


@ganlab.hookimpl
def ganlab_datasets() -> dict[str, type]:
    """The dataset by its name."""
    return {"grey_images": GreyImages}
