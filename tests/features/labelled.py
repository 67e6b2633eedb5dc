"""Labelled images for tests of feature networks."""

import numpy as np
import tensorflow as tf
from small import Points


class Images(Points):
    """Images of two classes, dark and bright, in a fixed order; counts the calls of `examples`."""

    def __init__(self, size=41, shape=(6, 5, 1), *, classes=2, brightness=0.5):
        random = np.random.default_rng(0)
        self.classes, self.asked = classes, 0
        self._labels = np.arange(size) * 7 % 3 % 2
        signs = brightness * (2.0 * self._labels - 1).reshape(-1, *[1] * len(shape))
        super().__init__(np.clip(signs + 0.3 * random.normal(size=(size, *shape)), -1, 1))

    def examples(self, numbers, seed):
        self.asked += 1
        return super().examples(numbers, seed)

    def labels(self, numbers):
        return tf.gather(tf.constant(self._labels, tf.int64), numbers)
