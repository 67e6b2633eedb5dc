"""The objective of one network's update, and gradients as tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from ganlab.training.graph.replica import Log


@dataclass(frozen=True)
class Objective:
    """One network's loss and penalties: each `(local_batch,)`, and a scalar of its weights.

    Attributes:
        loss: The loss of each example.
        penalty: The constraints' penalties on each, or None.
        weight_penalty: Their penalties on the weights, or None.
    """

    loss: tf.Tensor
    penalty: tf.Tensor | None
    weight_penalty: tf.Tensor | None

    def total(self, size: int, shares: int) -> tf.Tensor:
        """The part of the global loss in these rows, whose gradients the optimizer sums.

        Args:
            size: The global batch.
            shares: The number of parts of the global batch: replicas times microbatches.
        """
        total = tf.reduce_sum(self.loss if self.penalty is None else self.loss + self.penalty) / size
        # The penalty on the weights is the same in every part.
        return total if self.weight_penalty is None else total + self.weight_penalty / shares

    def report(self, role: str, log: Log) -> None:
        """Logs the mean loss, and the penalties in it if there are any."""
        mean = tf.reduce_mean(self.loss)
        if self.penalty is not None or self.weight_penalty is not None:
            extra = tf.constant(0.0) if self.weight_penalty is None else self.weight_penalty
            added = extra if self.penalty is None else tf.reduce_mean(self.penalty) + extra
            log.add(f"{role}/penalty", added)
            mean += added
        log.add(f"{role}/loss", mean)


def dense(value: Any, of: tf.Tensor) -> tf.Tensor:
    """A gradient by a tensor as a tensor, zero where nothing leads to it."""
    if value is None:
        return tf.zeros_like(of)
    # The gradient of an embedding has only the rows that were looked up, and replicas and microbatches are summed.
    return tf.convert_to_tensor(value) if isinstance(value, tf.IndexedSlices) else value
