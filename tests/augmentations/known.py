"""A replica for tests of augmentations."""

import numpy as np
import tensorflow as tf


class Known:
    """A replica whose numbers are known and kept, and which stands for `count` alike."""

    def __init__(self, count=1):
        self.count, self.drawn, self.logged = count, [], {}

    def uniform(self, shape):
        self.drawn.append(np.random.default_rng(len(self.drawn)).random(tuple(shape), np.float32))
        return tf.constant(self.drawn[-1])

    def normal(self, shape):
        self.drawn.append(np.random.default_rng(len(self.drawn)).standard_normal(tuple(shape), np.float32))
        return tf.constant(self.drawn[-1])

    def mean(self, x):
        return x

    def log(self, name, values, reduce="mean"):
        self.logged[name] = float(values)
