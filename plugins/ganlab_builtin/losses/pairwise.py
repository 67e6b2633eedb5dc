"""Every row of one batch against every row of another, and means that leave an example's own row out."""

from __future__ import annotations

import ganlab
from ganlab.lazy import tensorflow as tf

EMBEDDING = "embedding"
# Under the square root: keeps the gradient finite where two rows are equal. Elsewhere rounding hides it.
_TINY = 1e-12


def rows(x: tf.Tensor) -> tf.Tensor:
    """One vector for each example, `(n, ...) -> (n, d)`."""
    return tf.reshape(x, [x.shape[0], -1])


def squared_distances(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Between each row of `(n, d)` and each of `(m, d)`: `(n, m)`. In between are n * m * d numbers.

    From differences, because the shorter way by products cancels where rows are close.
    """
    return tf.reduce_sum(tf.square(x[:, None] - y[None]), axis=2)


def distances(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Euclidean distances between all rows of two batches, `(n, d), (m, d) -> (n, m)`."""
    return tf.sqrt(squared_distances(x, y) + _TINY)


def own_places(n: int, replica: ganlab.Replica) -> tf.Tensor:
    """Where a replica's `n` examples stand in the global batch, `(n,)` int32."""
    return tf.cast(replica.id, tf.int32) * n + tf.range(n)


def mean_over_others(values: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
    """The mean of each row over all other examples of the global batch, if there are any: `(n, size) -> (n,)`."""
    n, size = values.shape
    if size < 2:
        raise ganlab.IncompatibleError(
            "The loss compares the examples of a batch with one another, and the batch has only one. Set "
            "experiment.batch_size and experiment.generator_batch_size to 2 or more."
        )
    one_hot = tf.one_hot(own_places(n, replica), size, dtype=values.dtype)
    return tf.reduce_sum((1.0 - one_hot) * values, axis=1) / (size - 1)
