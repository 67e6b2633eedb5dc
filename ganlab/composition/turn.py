"""How often each side is updated in a step, and which of the run's updates these are."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ganlab.errors import ConfigError, IncompatibleError
from ganlab.interfaces import Schedule
from ganlab.lazy import tensorflow as tf
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.plugins.recipes import selector_of

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Turn:
    """The updates of every step of a run: those of the critic, then those of the generator.

    Attributes:
        critic: The critic's updates in a step; None where they follow a schedule.
        generator: The generator's.
        firsts: Where they follow a schedule, the number of each step's first critic update, `(steps + 2,)` int64.
        waits: Whether the loss decides in each step if the generator moves.
    """

    critic: int | None = 1
    generator: int = 1
    firsts: np.ndarray | None = None
    waits: bool = False

    @classmethod
    def made(cls, critic: int | Schedule, generator: int, steps: int, *, waits: bool) -> Turn:
        """The turn of a run of `steps`; the critic's updates may follow a schedule."""
        if not isinstance(critic, Schedule):
            return cls(critic, generator, waits=waits)
        return cls(None, generator, _firsts(critic, steps), waits)

    def of(self, side: str) -> int | None:
        """The updates of a side in a step; None where they follow a schedule."""
        return self.critic if side == "critic" else self.generator

    def axis(self, side: str) -> list[int | None]:
        """The axis of updates in what a side takes of an iteration: none where the generator makes a single one."""
        return [] if side != "critic" and self.generator == 1 else [self.of(side)]

    def updates(self, side: str, step: Any) -> tuple[Any, Any]:
        """The number of a side's first update in a step, int64, and how many it makes there.

        Both are those of an array of steps too.
        """
        fixed = self.of(side)
        if fixed is not None or self.firsts is None:
            return step if fixed == 1 else step * fixed, fixed
        now = tf.minimum(step, len(self.firsts) - 2)  # tf.data prepares steps beyond the last
        first = tf.gather(self.firsts, now)
        return first, tf.gather(self.firsts, now + 1) - first

    def step_of(self, side: str, update: tf.Tensor) -> tf.Tensor:
        """The step in which a side makes an update, int64, both by number."""
        fixed = self.of(side)
        if fixed:
            return update // fixed
        return tf.searchsorted(self.firsts, tf.reshape(update, [1]), side="right", out_type=tf.int64)[0] - 1

    def total(self, side: str, steps: int) -> int:
        """How many updates a side makes in this many steps, if it moves in each."""
        first, _ = self.updates(side, steps)
        return int(first)

    @property
    def varies(self) -> str:
        """The part of the experiment by which steps differ, as messages name it; empty if they do not."""
        if self.critic is None:
            return "experiment.critic_steps follows a schedule"
        return "the loss decides when the generator moves (`ready`)" if self.waits else ""

    def check_static(self, what: str, remedy: str, *, one: bool = False) -> None:
        """Refuses something that takes all steps to have the same updates, perhaps a single one of the generator."""
        several = f"experiment.generator_steps is {self.generator}" if one and self.generator > 1 else ""
        if why := self.varies or several:
            same = "the same updates in each step" + ", one of them the generator's" * one
            raise IncompatibleError(f"{what} needs {same}, and {why}. {remedy}")


ONE_EACH = Turn()


@functools.lru_cache(maxsize=4)
def _firsts(schedule: Schedule, steps: int) -> np.ndarray:
    import numpy as np

    every = tf.range(steps + 1, dtype=tf.float32)
    with plugin_code(selector_of(schedule), "value"), tf.device("CPU:0"):
        value = tf.vectorized_map(lambda step: tf.cast(schedule.value(step, steps), tf.float32), every)
    counts = np.round(np.asarray(value, np.float64))
    wrong = np.flatnonzero(~((counts >= 1) & (counts < 2**31)))
    if len(wrong):
        raise ConfigError(
            f"experiment.critic_steps follows {selector_of(schedule)}, which gives step {wrong[0]} the number "
            f"{counts[wrong[0]]:g}, rounded. It must be at least 1 and below 2**31. Change the schedule."
        )
    return np.concatenate([[0], np.cumsum(counts.astype(np.int64))])
