"""Learning rates that follow a schedule, and what of all that follows one depends on the number of steps."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ganlab.composition import Experiment, schedules
from ganlab.interfaces import Schedule
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.training.graph.roles import GENERATOR, ROLES, role_of

# Steps of which the values are computed at once.
_AT_ONCE = 1 << 20

_Curve = Callable[[tf.Tensor], tf.Tensor]


class _Number(threading.local):
    """The number in the run of the update that this thread computes; None outside."""

    now: Any = None


_number = _Number()


@contextlib.contextmanager
def numbered(update: Any) -> Iterator[None]:
    """Context manager: learning rates are those of this update, an int64 scalar."""
    before = _number.now
    _number.now = update
    try:
        yield
    finally:
        _number.now = before


class ByNumber(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate by an update's number in the run.

    An optimizer's own count is another after a fork with other updates in a step, or with another optimizer.
    """

    def __init__(self, rate: Callable[[Any], tf.Tensor]) -> None:
        self._rate = rate

    def __call__(self, step: Any) -> tf.Tensor:
        """The learning rate; outside of a step that of the optimizer's count."""
        return self._rate(step if _number.now is None else _number.now)


class Followed(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule of generator updates, for an optimizer that makes several updates in each."""

    def __init__(self, schedule: Schedule, step_of: Callable[[tf.Tensor], tf.Tensor], steps: int) -> None:
        self._schedule, self._step_of, self._steps = schedule, step_of, steps

    def __call__(self, step: Any) -> tf.Tensor:
        """The learning rate at this update of the optimizer, a float32 scalar."""
        done = self._step_of(tf.cast(tf.convert_to_tensor(step), tf.int64))
        return tf.cast(self._schedule.value(tf.cast(done, tf.float32), self._steps), tf.float32)


def fill_decay_steps(config: Mapping[str, Any], updates: int) -> bool:
    """Gives a schedule with `decay_steps: None` in an optimizer's configuration its number; whether there is one."""
    rate = config.get("learning_rate")
    if not isinstance(rate, dict) or rate["config"].get("decay_steps", 0) is not None:
        return False
    rate["config"]["decay_steps"] = updates
    return True


def changed_by_steps(experiment: Experiment, before: int, done: int) -> list[str]:
    """The schedules that would have had other values in the steps done so far, had the run been of the `before` length.

    Returns:
        What follows them, for example `critic_optimizer/learning_rate`.
    """
    return [
        name
        for name, count, earlier, now in _curves(experiment, before, done)
        if any(
            not np.array_equal(_values(name, earlier, first, count), _values(name, now, first, count), equal_nan=True)
            for first in range(0, count, _AT_ONCE)
        )
    ]


def _curves(experiment: Experiment, before: int, done: int) -> Iterator[tuple[str, int, _Curve, _Curve]]:
    """Each schedule: its name, how many values count, and its curve over the earlier and the new number of steps."""
    for tag, schedule in schedules(experiment).items():
        earlier, now = (functools.partial(_of_length, schedule, steps) for steps in (before, experiment.steps))
        yield tag.removeprefix("schedules/"), done + 1, earlier, now
    turns = {steps: replace(experiment, steps=steps).turn for steps in (before, experiment.steps)}
    further = (role_of(name, GENERATOR, experiment) for name in experiment.optimizers or {})
    for role in (*reversed(ROLES.values()), *further) if experiment.has_critic else (ROLES[GENERATOR], *further):
        lengths = [(turn.total(role.side, steps), role.optimizer_of(experiment)) for steps, turn in turns.items()]
        configs = [template.get_config() for _, template in lengths]
        if all(fill_decay_steps(config, updates) for config, (updates, _) in zip(configs, lengths, strict=True)):
            rates = [keras.optimizers.schedules.deserialize(config["learning_rate"]) for config in configs]
            count = turns[experiment.steps].total(role.side, done + 1)
            yield f"{role.optimizer}/learning_rate", count, rates[0], rates[-1]


def _of_length(schedule: Schedule, steps: int, step: tf.Tensor) -> tf.Tensor:
    return schedule.value(step, steps)


def _values(name: str, curve: _Curve, first: int, count: int) -> np.ndarray:
    steps = tf.range(first, min(first + _AT_ONCE, count), dtype=tf.float32)
    with plugin_code(f"schedules/{name}", "value"), tf.device("CPU:0"):
        return np.asarray(tf.vectorized_map(lambda step: tf.cast(curve(step), tf.float32), steps))
