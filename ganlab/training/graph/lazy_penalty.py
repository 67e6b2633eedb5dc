"""Lazy penalties: computed once in a number of critic updates, and not at all in those between."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from ganlab.training.graph.replica import Log


def lazily(penalty: Callable[[Log], tf.Tensor | None], every: int, step: tf.Tensor, rows: int, log: Log) -> tf.Tensor:
    """Lazy regularization (Karras et al., "Analyzing and improving the image quality of StyleGAN", 2020, appendix B).

    The penalty is multiplied by `every`, so that over a cycle of updates it counts as much as one in every update.

    `penalty` returns `(local_batch,)` or None and logs; `rows` is its length. The first update of each cycle has it; in
    the others the result and the metrics are zero.
    """
    inner = Log()

    def computed() -> tuple[tf.Tensor, list[tf.Tensor]]:
        value = penalty(inner)
        return (zeros if value is None else every * value), list(inner.values)

    zeros = tf.zeros([rows])
    due = tf.equal(step % every, 0)
    if tf.executing_eagerly():
        # Metrics are known only once the penalty has run, so without a graph it always runs.
        value, values = computed()
        value, values = tf.where(due, value, zeros), [tf.where(due, v, 0.0) for v in values]
    else:
        value, values = tf.cond(due, computed, lambda: (zeros, [tf.zeros([]) for _ in inner.values]))
    for metric, measured in zip(inner.metrics, values, strict=True):
        log.add(metric.tag, measured, metric.reduce, every)
    return value
