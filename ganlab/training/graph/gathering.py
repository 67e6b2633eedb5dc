"""Numbers of all processes that train together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf


class Gather:
    """Gathers what each process has, by collective operations that all of them must begin."""

    def __init__(self, strategy: tf.distribute.Strategy) -> None:
        self._strategy = strategy
        self._ones = strategy.experimental_distribute_values_from_function(lambda context: tf.constant(1))
        self._across = tf.function(self._all, autograph=False, reduce_retracing=True)

    def __call__(self, rows: tf.Tensor) -> np.ndarray:
        """The rows of all replicas, `(n, replicas, k)`, from those of this process's, `(n, local_replicas, k)`."""
        if rows.shape[1] == self._strategy.num_replicas_in_sync:
            return rows.numpy()
        return self._across(rows).numpy()

    def extremes(self, values: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest of each value over all processes, `(k,)` float32 each."""
        mine = len(self._strategy.experimental_local_results(self._ones))
        rows = np.tile(np.asarray(values, np.float32), [1, mine, 1])
        if mine < self._strategy.num_replicas_in_sync:
            rows = self._across(tf.constant(rows)).numpy()
        return rows.min(axis=(0, 1)), rows.max(axis=(0, 1))

    def _all(self, rows: tf.Tensor) -> tf.Tensor:
        remaining = tf.unstack(rows, axis=1)
        local = self._strategy.experimental_distribute_values_from_function(lambda context: remaining.pop(0))

        def gather(mine: tf.Tensor) -> tf.Tensor:
            return tf.distribute.get_replica_context().all_gather(mine[:, None], axis=1)

        return self._strategy.experimental_local_results(self._strategy.run(gather, args=(local,)))[0]
