"""Examples of another dataset that vary from one epoch to the next: mirrored, or dequantized."""

from __future__ import annotations

import math
from typing import Any

import ganlab
from ganlab import functional
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.checks import refusal

_MIRROR, _NOISE = 101, 102


class Varied(ganlab.Dataset):
    """Images of another dataset, mirrored at random, their bytes dequantized, or both.

    What happens to an image belongs to its number and the epoch: it is the same on any number of replicas and in a
    resumed run, and new in every epoch.
    """

    def __init__(self, *, dataset: ganlab.Dataset, flip: bool = False, dequantize: bool = False) -> None:
        """Takes the images.

        Args:
            dataset: Whose images vary.
            flip: Whether each is mirrored, left to right, with probability 1/2.
            dequantize: Whether a byte b becomes `(b + u) / 128 - 1` with u uniform in [0, 1), in place of
                `b / 127.5 - 1`, as in the code of Gulrajani et al., "Improved Training of Wasserstein GANs" (2017).
                The dataset's values in [-1, 1] are rounded to the nearest byte before.

        Raises:
            ConfigError: The examples are not images, or nothing was to vary.
        """
        if len(dataset.sample_shape) != 3:
            raise refusal(
                "varied",
                "dataset",
                dataset,
                f"has examples of shape {tuple(dataset.sample_shape)}; they must be images, (height, width, channels).",
            )
        if not (flip or dequantize):
            raise ganlab.ConfigError(
                "datasets.varied has no effect with flip = False and dequantize = False. "
                "Set datasets.varied.flip = True, datasets.varied.dequantize = True, or both."
            )
        self.dataset, self._flip, self._dequantize = dataset, flip, dequantize
        self.sample_shape, self.size, self.classes = tuple(dataset.sample_shape), dataset.size, dataset.classes

    def examples(self, numbers: tf.Tensor, seed: int, epochs: tf.Tensor | None = None) -> tf.Tensor:
        """The images with these numbers in these epochs, the first by default: `(n, *sample_shape)` float32."""
        images = functional.call(self.dataset.examples, numbers, seed, epochs=epochs)
        # A number for each example and epoch; an endless set has one epoch.
        drawn = numbers if epochs is None or self.size is None else numbers + epochs * self.size
        if self._dequantize:
            width = math.prod(self.sample_shape)
            noise = tf.reshape(functional.example_uniform(drawn, width, seed, _NOISE), tf.shape(images))
            images = (tf.round((images + 1.0) * 127.5) + noise) / 128.0 - 1.0
        if self._flip:
            mirrored = functional.example_uniform(drawn, 1, seed, _MIRROR)[:, :, None, None] < 0.5
            images = tf.where(mirrored, images[:, :, ::-1], images)
        return tf.ensure_shape(images, [numbers.shape[0], *self.sample_shape])

    def labels(self, numbers: tf.Tensor, seed: int = 0) -> tf.Tensor:
        """The other dataset's, `(n,)` int64."""
        return functional.call(self.dataset.labels, numbers, seed=seed)

    def fingerprint(self) -> dict[str, Any]:
        """That of the other dataset, and what varies."""
        return {**self.dataset.fingerprint(), "flip": self._flip, "dequantize": self._dequantize}
