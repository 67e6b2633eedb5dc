"""The steepest pair of points that gradient ascent finds."""

import numpy as np
import tensorflow as tf


def steepest(layer, shape, *, seed=0, pairs=32, steps=40):
    """The largest `|f(x) - f(y)| / |x - y|` over pairs, random ones and those that gradient ascent makes of them.

    Half of the pairs start a hundredth apart, so that kinks are met from near. Float64.
    """
    random = np.random.default_rng(seed)
    x = random.normal(size=(pairs, *shape))
    apart = np.where(np.arange(pairs) % 2, 1.0, 0.01).reshape(-1, *(1 for _ in shape))
    both = tf.Variable(np.stack([x, x + apart * random.normal(size=x.shape)]))

    def length(difference):
        return tf.norm(tf.reshape(difference, [pairs, -1]), axis=1)

    @tf.function
    def ratios():
        with tf.GradientTape() as tape:
            found = length(layer(both[0]) - layer(both[1])) / length(both[0] - both[1])
            total = tf.reduce_sum(tf.math.log(found + 1e-12))
        gradient = tape.gradient(total, both)
        size = length(both[0] - both[1]) / (length(gradient[0]) + length(gradient[1]) + 1e-12)
        both.assign_add(0.2 * gradient * tf.reshape(size, [1, pairs, *(1 for _ in shape)]))
        return tf.reduce_max(found)

    return max(float(ratios()) for _ in range(steps))
