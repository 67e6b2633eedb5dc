"""One training iteration on one replica: the critic's updates, then the generator's.

Everything depends on one rule: a per-example loss is summed over the local batch and divided by the *global* batch
size, and the optimizer sums gradients over replicas. The logged losses are means over the local batch; their mean over
replicas is the mean over the global batch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.plugins import scheduled
from ganlab.training.graph import philox
from ganlab.training.graph.collectives import own_all_reduces
from ganlab.training.graph.critic_update import CriticUpdate
from ganlab.training.graph.generator_update import GeneratorUpdate
from ganlab.training.graph.inputs import OF_GENERATOR
from ganlab.training.graph.learning_rate import numbered
from ganlab.training.graph.players import look_ahead
from ganlab.training.graph.plugin_state import no_variables
from ganlab.training.graph.refusals import of_whole_batch
from ganlab.training.graph.replica import Log, Metric
from ganlab.training.graph.roles import CRITIC, GENERATOR
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.update_metrics import check_unique, over_updates
from ganlab.training.graph.values import Ahead, Tensors

# The tag of whether the generator moves in a step, where the loss decides it.
READY = "generator/ready"


class TrainingStep:
    """The iteration of one experiment over one state.

    Attributes:
        experiment: The experiment.
        state: The state.
        critic: The critic's update.
        generator: The generator's update.
        turn: The updates of each step.
        looks_ahead: Whether gradients are taken at weights ahead of those that they move.
        metrics: The metrics that `iteration` returns, in order; known once it has been traced.
    """

    def __init__(
        self,
        experiment: Experiment,
        state: TrainingState,
        *,
        compiled: bool,
        program: bool = False,
        shared: bool = True,
    ) -> None:
        """Takes the experiment and its variables.

        Args:
            experiment: The experiment.
            state: Its variables.
            compiled: Whether XLA compiles the gradients.
            program: Whether the step is traced into a program that XLA compiles whole.
            shared: Whether the critic's updates of an iteration may share a trace.

        Raises:
            IncompatibleError: Microbatches, or XLA, do not go with a part that takes statistics of the whole batch; or
                some optimizers look ahead and others do not, or the updates of a step do not go with that.
        """
        self.experiment, self.state, self._program = experiment, state, program
        self.turn = experiment.turn
        self.metrics: list[Metric] = []
        self._critic_metrics: list[Metric] = []
        self._generator_metrics: list[Metric] = []
        layers = [layer for player in state.in_turn if (layer := player.network.synchronizes)]
        if experiment.microbatches > 1 and layers:
            raise of_whole_batch(layers[0])
        # On the device, from where nothing has to copy it.
        with tf.device(experiment.strategy.extended.worker_devices[0]):
            self._seed = tf.constant(experiment.seed, tf.int64) if program else None
        self.looks_ahead = look_ahead(state.in_turn)
        if self.looks_ahead:
            self.turn.check_static("An optimizer that looks ahead", "Use another optimizer.", one=True)
        # Optimizers whose learning rates count moves, not steps, by what these are logged under.
        self._counting = {
            f"schedules/{player.role.optimizer}/learning_rate": player.optimizer
            for player in state.in_turn
            if self.turn.waits and player.role.side == GENERATOR
        }
        self.critic = CriticUpdate(experiment, state, compiled=compiled, shared=shared)
        self.generator = GeneratorUpdate(experiment, state, compiled=compiled, shared=shared)

    def iteration(self, step: tf.Tensor, examples: Tensors) -> tf.Tensor:
        """Trains for one step; called in a replica's context.

        Args:
            step: The number of generator updates done, an int64 scalar.
            examples: This replica's rows, as `Inputs.of` returns them: those of each critic update, `(critic_steps,
                local_batch, ...)`, and those of the generator's updates under `generator/`.

        Returns:
            The local value of every metric, float32, in the order of `self.metrics`.

        Raises:
            IncompatibleError: Steps have different updates.
        """
        self.turn.check_static("A trace of one iteration", "Set numbers of updates that stay the same.")
        # Unrolled: an optimizer cannot be applied inside a loop within a replica's function.
        updates = range(self.turn.critic or 0)
        ahead: dict[str, Any] = {}
        if self.looks_ahead:
            with self._scope(step), numbered(step):
                ahead.update(self.generator.ahead(step, self._of_generator(examples, 0)))
        rows = [self.critic_update(step, tf.constant(k, tf.int64), examples, ahead) for k in updates]
        of_critic = tf.stack(rows) if rows else None
        of_generator = [self.generator_update(step, j, examples, ahead) for j in range(self.turn.generator)]
        return self.reduced(step, of_critic, of_generator)

    def critic_update(
        self, step: tf.Tensor, k: tf.Tensor, examples: Tensors, ahead: dict[str, Any] | None = None
    ) -> tf.Tensor:
        """As `iteration`, the critic's k-th update alone: its metrics, `(metrics,)` float32.

        `ahead` has where the generator's side looks ahead to, and takes where the critic's does.
        """
        data = {name: x[k] for name, x in examples.items() if not name.startswith(OF_GENERATOR)}
        update = self.turn.updates(CRITIC, step)[0] + k
        with self._scope(step), numbered(update):
            if ahead:
                ahead.update(self.critic.ahead(update, data))
            self._critic_metrics, values = self.critic(update, data, ahead)
        return values

    def generator_update(self, step: tf.Tensor, j: int, examples: Tensors, ahead: Ahead | None = None) -> tf.Tensor:
        """As `iteration`, the generator's j-th update alone: its metrics and the schedules' values, `(metrics,)`."""
        first, count = self.turn.updates(GENERATOR, step)
        update = first if count == 1 else first + j
        with self._scope(step), numbered(update):
            log = Log()
            for tag, schedule in self.state.schedules.items():
                value = schedule.value(tf.cast(step, tf.float32), self.experiment.steps)
                log.add(tag, tf.cast(self._counting[tag].learning_rate if tag in self._counting else value, tf.float32))
            metrics, values = self.generator(update, self._of_generator(examples, j), ahead)
        self._generator_metrics = metrics + log.metrics
        return tf.stack([*tf.unstack(values), *log.values])

    def waiting(self, replicas: int) -> list[tf.Tensor]:
        """The metrics of generator updates that are not made, as those of so many replicas; after those are traced."""
        return [tf.zeros([replicas, len(self._generator_metrics)])] * self.turn.generator

    def reduced(
        self, step: tf.Tensor, of_critic: Any, of_generator: Sequence[tf.Tensor], ready: tf.Tensor | None = None
    ) -> tf.Tensor:
        """The metrics of an iteration in the order of `self.metrics`, `(..., metrics)`, from those of its updates.

        Those of the critic are `(critic_steps, ..., metrics)` or None, those of the generator `(..., metrics)` in each.
        `ready` has whether it moved on each replica, where the loss decides it.
        """
        when = "" if ready is None else READY
        of_generator_side = [replace(metric, side=GENERATOR, when=when) for metric in self._generator_metrics]
        self.metrics = self._critic_metrics + of_generator_side
        check_unique(self._critic_metrics, self._generator_metrics)
        values = [of_generator[0]]
        if self.turn.generator > 1:
            first, _ = self.turn.updates(GENERATOR, step)
            values = [over_updates(self._generator_metrics, tf.stack(of_generator), first)]
        if of_critic is not None:
            values[:0] = [over_updates(self._critic_metrics, of_critic, self.turn.updates(CRITIC, step)[0])]
        if ready is not None:
            self.metrics.append(Metric(READY))
            values.append(tf.cast(ready, tf.float32)[:, None])
        return tf.concat(values, -1)

    @contextlib.contextmanager
    def _scope(self, step: tf.Tensor) -> Iterator[None]:
        steps = self.experiment.steps
        created, drawn = tf.variable_creator_scope(no_variables), philox.composing(self._program, self._seed)
        with created, drawn, scheduled.at(step, steps), own_all_reduces():
            yield

    @property
    def compiled(self) -> list[str]:
        """What XLA compiles: the gradients of "critic" and "generator", or "step"; known once `iteration` is traced."""
        if self._program:
            return ["step"]
        parts = {"critic": self.critic.gradients, "generator": self.generator.gradients}
        return [name for name, gradients in parts.items() if gradients.compiled]

    @property
    def communicates(self) -> str:
        """The name, in messages, of what communicates in a part that XLA could compile; empty if nothing does."""
        return self.critic.gradients.communicates or self.generator.gradients.communicates

    def _of_generator(self, examples: Tensors, j: int) -> Tensors:
        own = {name.removeprefix(OF_GENERATOR): x for name, x in examples.items() if name.startswith(OF_GENERATOR)}
        return own if self.turn.generator == 1 else {name: x[j] for name, x in own.items()}
