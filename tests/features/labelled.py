"""Labelled images for tests of feature networks."""

import numpy as np
import tensorflow as tf

import ganlab


class Images(ganlab.Dataset):
    """Images of two classes, dark and bright, in a fixed order; counts the calls of `examples`."""

    def __init__(self, size=41, shape=(6, 5, 1), *, classes=2, brightness=0.5):
        random = np.random.default_rng(0)
        self.sample_shape, self.size, self.classes, self.asked = shape, size, classes, 0
        self._labels = np.arange(size) * 7 % 3 % 2
        signs = brightness * (2.0 * self._labels - 1).reshape(-1, *[1] * len(shape))
        self._rows = np.clip(signs + 0.3 * random.normal(size=(size, *shape)), -1, 1).astype(np.float32)

    def examples(self, numbers, seed):
        self.asked += 1
        return tf.gather(self._rows, numbers)

    def labels(self, numbers):
        return tf.gather(tf.constant(self._labels, tf.int64), numbers)
