"""Reads the examples, pairs and labels of datasets by number."""

import numpy as np
import tensorflow as tf


def pair(dataset, count, seed=0):
    """The first examples and their counterparts, in float64."""
    numbers = tf.range(count, dtype=tf.int64)
    return tuple(np.asarray(part(numbers, seed), np.float64) for part in (dataset.examples, dataset.counterpart))


def labels(dataset, numbers):
    found = dataset.labels(tf.constant(numbers, tf.int64))
    assert found.dtype == tf.int64
    return found.numpy().tolist()
