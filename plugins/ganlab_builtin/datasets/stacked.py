"""Three grey images as the channels of one: a distribution of a thousand known modes."""

from __future__ import annotations

from typing import Any

import ganlab
from ganlab import functional
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.checks import refusal

_CHANNELS = 3
_CHOICE, _DRAWN = 104, 24  # a stream of random numbers, and how many bits they have
_MOST_CLASSES = 100  # whose million modes can still be counted


class StackedMnist(ganlab.Dataset):
    """Three images of another dataset as the channels of one; of MNIST's, a thousand modes.

    Metz, Poole, Pfau and Sohl-Dickstein, "Unrolled generative adversarial networks" (2017), section 3.3.1. The images
    are drawn independently, by the example's number and the seed; papers draw 128,000 examples once and repeat them,
    where this set never ends. Its class is the number that the three show, red first: 307 is class 307.

    Attributes:
        digits: The dataset of single images.
    """

    def __init__(self, *, dataset: ganlab.Dataset) -> None:
        """Takes the images.

        Args:
            dataset: The single images: grey, finite and with labels, for example `@datasets.idx()`.

        Raises:
            ConfigError: The examples are not grey images, never end, or have no labels, or more than 100 classes.
        """
        shape, size, classes = tuple(dataset.sample_shape), dataset.size, dataset.classes
        rule = ""
        if len(shape) != 3 or shape[2] != 1:
            rule = f"has examples of shape {shape}; they must be grey images, (height, width, 1)."
        elif size is None or size > 2**_DRAWN:
            rule = f"has {size or 'endless'} examples; there must be at most {2**_DRAWN:,}, to draw from."
        elif classes is None or classes > _MOST_CLASSES:
            rule = f"has {classes or 'no'} classes; there must be labels of at most {_MOST_CLASSES} classes."
        if rule:
            raise refusal("stacked_mnist", "dataset", dataset, rule)
        assert size is not None
        assert classes is not None
        self.digits, self._count = dataset, size
        self.sample_shape, self.classes = (*shape[:2], _CHANNELS), classes**_CHANNELS

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The stacks with these numbers, `(n, height, width, 3)` float32."""
        count, (height, width, _) = numbers.shape[0], self.sample_shape
        images = functional.call(self.digits.examples, self._chosen(numbers, seed), seed)
        return tf.transpose(tf.reshape(images, (count, _CHANNELS, height, width)), (0, 2, 3, 1))

    def labels(self, numbers: tf.Tensor, seed: int = 0) -> tf.Tensor:
        """The modes of the stacks with these numbers, `(n,)` int64."""
        base = self.digits.classes or 1
        labels = functional.call(self.digits.labels, self._chosen(numbers, seed), seed=seed)
        places = tf.constant([base**2, base, 1], tf.int64)
        return tf.reduce_sum(tf.reshape(tf.cast(labels, tf.int64), (-1, _CHANNELS)) * places, axis=1)

    def fingerprint(self) -> dict[str, Any]:
        """That of the single images, and how many are stacked."""
        return {**self.digits.fingerprint(), "stacked": _CHANNELS}

    def _chosen(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The numbers of the single images, `(3 n,)` int64: of whole numbers, so that the last is never passed."""
        uniform = functional.example_uniform(numbers, _CHANNELS, seed, _CHOICE)
        whole = tf.cast(uniform * 2.0**_DRAWN, tf.int64)
        return tf.reshape(tf.bitwise.right_shift(whole * self._count, tf.constant(_DRAWN, tf.int64)), [-1])
