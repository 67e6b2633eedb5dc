"""Examples of another dataset that vary from one epoch to the next: mirrored, or dequantized."""

from __future__ import annotations

import math
from typing import Any

import ganlab
from ganlab import functional
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.around import AroundADataset
from ganlab_builtin.datasets.checks import refusal

_MIRROR, _NOISE = 101, 102


class Varied(AroundADataset):
    """Images of another dataset, mirrored at random, their bytes dequantized, or both.

    What happens to an image belongs to its number and the epoch: it is the same on any number of replicas and in a
    resumed run, and new in every epoch. Sources and conditions that are images are mirrored with their image.
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
            shape = tuple(dataset.sample_shape)
            rule = f"has examples of shape {shape}; they must be images, (height, width, channels)."
            raise refusal("varied", "dataset", dataset, rule)
        if not (flip or dequantize):
            raise ganlab.ConfigError(
                "datasets.varied has no effect with flip = False and dequantize = False. "
                "Set datasets.varied.flip = True, datasets.varied.dequantize = True, or both."
            )
        super().__init__(dataset)
        self._flip, self._dequantize = flip, dequantize

    def examples(self, numbers: tf.Tensor, seed: int, epochs: tf.Tensor | None = None) -> tf.Tensor:
        """The images with these numbers in these epochs, the first by default: `(n, *sample_shape)` float32."""
        images = functional.call(self.dataset.examples, numbers, seed, epochs=epochs)
        drawn = self._drawn(numbers, epochs)
        if self._dequantize:
            width = math.prod(self.sample_shape)
            noise = tf.reshape(functional.example_uniform(drawn, width, seed, _NOISE), tf.shape(images))
            images = (tf.round((images + 1.0) * 127.5) + noise) / 128.0 - 1.0
        return tf.ensure_shape(self._mirrored(images, drawn, seed), [numbers.shape[0], *self.sample_shape])

    def conditions(self, numbers: tf.Tensor, seed: int, epochs: tf.Tensor | None = None) -> tf.Tensor:
        """The other dataset's, images mirrored as the examples are: `(n, *condition_shape)` float32."""
        given = functional.call(self.dataset.conditions, numbers, seed, epochs=epochs)
        return self._mirrored(given, self._drawn(numbers, epochs), seed)

    def sources(self, numbers: tf.Tensor, seed: int, epochs: tf.Tensor | None = None) -> tf.Tensor:
        """The other dataset's, images mirrored as the examples are: `(n, *source_shape)` float32."""
        given = functional.call(self.dataset.sources, numbers, seed, epochs=epochs)
        return self._mirrored(given, self._drawn(numbers, epochs), seed)

    def _drawn(self, numbers: tf.Tensor, epochs: tf.Tensor | None) -> tf.Tensor:
        """A number for each example and epoch; an endless set has one epoch."""
        return numbers if epochs is None or self.size is None else numbers + epochs * self.size

    def _mirrored(self, rows: tf.Tensor, drawn: tf.Tensor, seed: int) -> tf.Tensor:
        if not self._flip or len(rows.shape) != 4:
            return rows
        mirrored = functional.example_uniform(drawn, 1, seed, _MIRROR)[:, :, None, None] < 0.5
        return tf.where(mirrored, rows[:, :, ::-1], rows)

    def fingerprint(self) -> dict[str, Any]:
        """That of the other dataset, and what varies."""
        return {**self.dataset.fingerprint(), "flip": self._flip, "dequantize": self._dequantize}
