"""The least of several cones, a potential whose transport rays are known."""

from __future__ import annotations

import numpy as np

from ganlab.lazy import tensorflow as tf


class Funnels:
    """`u(x) = min_n (|x - a_n| + b_n)`, which has slope one along every ray from the centre of a funnel.

    Attributes:
        centers: a, `(funnels, d)` float32.
        heights: b, `(funnels,)` float32.
    """

    def __init__(self, centers: np.ndarray, heights: np.ndarray) -> None:
        self.centers, self.heights = centers.astype(np.float32), heights.astype(np.float32)

    def each(self, x: tf.Tensor) -> tf.Tensor:
        """`|x - a_n| + b_n` at `(n, d)`: `(n, funnels)`."""
        # In float64, because |x|^2 - 2 <x, a> + |a|^2 rounds away the distance to a near centre.
        x, centers = tf.cast(x, tf.float64), tf.constant(self.centers, tf.float64)
        squares = tf.reduce_sum(x * x, axis=1, keepdims=True) + tf.reduce_sum(centers * centers, axis=1)
        squares -= 2.0 * tf.matmul(x, centers, transpose_b=True)
        return tf.cast(tf.sqrt(tf.maximum(squares, 0.0)), tf.float32) + self.heights

    def chosen(self, x: tf.Tensor) -> tf.Tensor:
        """The funnel of each point, `(n,)` int64."""
        return tf.argmin(self.each(x), axis=1)

    def potential(self, x: tf.Tensor) -> tf.Tensor:
        """`-u(x)`, `(n,)`: an optimal critic of points moved towards their centres."""
        return -tf.reduce_min(self.each(x), axis=1)

    def gradient(self, x: tf.Tensor) -> tf.Tensor:
        """That of the potential, `(n, d)`: towards the centre of the point's funnel, of length one."""
        offset = tf.gather(self.centers, self.chosen(x)) - x
        return tf.math.divide_no_nan(offset, tf.norm(offset, axis=1, keepdims=True))
