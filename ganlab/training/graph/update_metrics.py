"""The metrics of an iteration from those of its updates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from ganlab.errors import ContractError
from ganlab.training.graph.replica import Metric


def over_updates(metrics: Sequence[Metric], values: tf.Tensor, first: tf.Tensor) -> tf.Tensor:
    """The metrics of an iteration's updates of one side, each reduced over the updates that measure it.

    Args:
        metrics: The metrics of each update.
        values: Their values, `(updates, ..., metrics)`.
        first: The number of the first update, an int64 scalar.

    Returns:
        The reduced values, `(..., metrics)`.
    """
    updates = first + tf.range(values.shape[0] or tf.shape(values, tf.int64)[0], dtype=tf.int64)
    by_metric = tf.unstack(values, num=len(metrics), axis=-1)
    reduced = [_over_measured(value, metric, updates) for metric, value in zip(metrics, by_metric, strict=True)]
    return tf.stack(reduced, -1)


def _over_measured(values: tf.Tensor, metric: Metric, updates: tf.Tensor) -> tf.Tensor:
    reduce = {"max": tf.reduce_max, "min": tf.reduce_min}.get(metric.reduce, tf.reduce_mean)
    if metric.every == 1:
        return reduce(values, 0)
    measured = tf.equal(updates % metric.every, 0)
    count = tf.reduce_sum(tf.cast(measured, tf.float32))
    if metric.reduce in ("max", "min"):
        worst = -np.inf if metric.reduce == "max" else np.inf
        broadcast = tf.reshape(measured, [-1, *(1 for _ in values.shape[1:])])
        return tf.where(count > 0, reduce(tf.where(broadcast, values, worst), 0), 0.0)
    return tf.reduce_sum(values, 0) / tf.maximum(count, 1.0)


def check_unique(of_critic: Sequence[Metric], of_generator: Sequence[Metric]) -> None:
    """Refuses a tag that both a critic's and a generator's update log, or one of them twice."""
    by_update = [[metric.tag for metric in metrics] for metrics in (of_critic, of_generator)]
    tags = by_update[0] + by_update[1]
    twice = sorted({tag for tag in tags if tags.count(tag) > 1})
    if twice:
        owners = [owner for owner, own in zip(("critic", "generator"), by_update, strict=True) if twice[0] in own]
        where = f"twice in one update, the {owners[0]}'s"
        if len(owners) > 1:
            where = "both in the critic's update and in the generator's"
        raise ContractError(f"The metric {twice[0]!r} was logged {where}. Give each a name of its own.")
