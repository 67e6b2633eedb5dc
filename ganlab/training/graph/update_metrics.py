"""The metrics of an iteration from those of its updates."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from ganlab.errors import ContractError
from ganlab.training.graph.replica import Metric


def over_updates(logs: list[tuple[list[Metric], tf.Tensor]], first: tf.Tensor) -> list[tf.Tensor]:
    """The metrics of an iteration's critic updates, each reduced over the updates that measure it.

    Args:
        logs: The metrics of each update and their values, `(metrics,)`; the metrics are the same in all.
        first: The number of the first update, an int64 scalar.

    Returns:
        A float32 scalar for each metric.
    """
    metrics, stacked = logs[0][0], tf.stack([values for _, values in logs])
    updates = first + tf.range(len(logs), dtype=tf.int64)
    return [_over_measured(stacked[:, i], metric, updates) for i, metric in enumerate(metrics)]


def _over_measured(values: tf.Tensor, metric: Metric, updates: tf.Tensor) -> tf.Tensor:
    if metric.every == 1:
        return {"max": tf.reduce_max, "min": tf.reduce_min}.get(metric.reduce, tf.reduce_mean)(values)
    measured = tf.equal(updates % metric.every, 0)
    count = tf.reduce_sum(tf.cast(measured, tf.float32))
    if metric.reduce in ("max", "min"):
        worst = -np.inf if metric.reduce == "max" else np.inf
        reduce = tf.reduce_max if metric.reduce == "max" else tf.reduce_min
        return tf.where(count > 0, reduce(tf.where(measured, values, worst)), 0.0)
    return tf.reduce_sum(values) / tf.maximum(count, 1.0)


def check_unique(metrics: list[Metric]) -> None:
    """Refuses two metrics of one name.

    Raises:
        ContractError: A tag is there twice.
    """
    tags = [metric.tag for metric in metrics]
    twice = sorted({tag for tag in tags if tags.count(tag) > 1})
    if twice:
        raise ContractError(f"The metric {twice[0]!r} was logged twice in one update. Give each a name of its own.")
