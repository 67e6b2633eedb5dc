"""A learning rate that follows a schedule of the experiment."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from ganlab.interfaces import Schedule


class Followed(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule of generator updates, for an optimizer that makes several updates in each."""

    def __init__(self, schedule: Schedule, updates: int, steps: int) -> None:
        self._schedule, self._updates, self._steps = schedule, updates, steps

    def __call__(self, step: Any) -> tf.Tensor:
        """The learning rate at this update of the optimizer, a float32 scalar."""
        done = tf.cast(tf.convert_to_tensor(step), tf.int64) // self._updates
        return tf.cast(self._schedule.value(tf.cast(done, tf.float32), self._steps), tf.float32)

    def get_config(self) -> dict[str, Any]:
        """Unsupported: the experiment's recipe has the schedule."""
        raise NotImplementedError
