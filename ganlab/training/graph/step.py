"""One training iteration on one replica: the critic's updates, then the generator's.

Everything depends on one rule: a per-example loss is summed over the local batch and divided by the *global* batch
size, and the optimizer sums gradients over replicas. The logged losses are means over the local batch; their mean over
replicas is the mean over the global batch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.plugins import scheduled
from ganlab.training.graph import philox
from ganlab.training.graph.collectives import own_all_reduces
from ganlab.training.graph.critic_update import CriticUpdate
from ganlab.training.graph.generator_update import GeneratorUpdate
from ganlab.training.graph.inputs import OF_GENERATOR
from ganlab.training.graph.players import look_ahead
from ganlab.training.graph.refusals import of_whole_batch
from ganlab.training.graph.replica import Log, Metric
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.update_metrics import check_unique, over_updates
from ganlab.training.graph.values import Ahead, Tensors


class TrainingStep:
    """The iteration of one experiment over one state.

    Attributes:
        experiment: The experiment.
        state: The state.
        critic: The critic's update.
        generator: The generator's update.
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
                some optimizers look ahead and others do not.
        """
        self.experiment, self.state, self._program = experiment, state, program
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
        self.critic = CriticUpdate(experiment, state, compiled=compiled, shared=shared)
        self.generator = GeneratorUpdate(experiment, state, compiled=compiled)

    def iteration(self, step: tf.Tensor, examples: Tensors) -> tf.Tensor:
        """Trains for one step; called in a replica's context.

        Args:
            step: The number of generator updates done, an int64 scalar.
            examples: This replica's rows, as `Inputs.of` returns them: those of each critic update, `(critic_steps,
                local_batch, ...)`, and those of the generator's update under `generator/`.

        Returns:
            The local value of every metric, float32, in the order of `self.metrics`.
        """
        # Unrolled: an optimizer cannot be applied inside a loop within a replica's function.
        updates = range(self.experiment.critic_steps)
        ahead: dict[str, Any] = {}
        if self.looks_ahead:
            with self._scope(step):
                ahead.update(self.generator.ahead(step, _of_generator(examples)))
        of_critic = tf.stack([self.critic_update(step, tf.constant(k, tf.int64), examples, ahead) for k in updates])
        return self.reduced(step, of_critic, self.generator_update(step, examples, ahead))

    def critic_update(
        self, step: tf.Tensor, k: tf.Tensor, examples: Tensors, ahead: dict[str, Any] | None = None
    ) -> tf.Tensor:
        """As `iteration`, the critic's k-th update alone: its metrics, `(metrics,)` float32.

        `ahead` has where the generator's side looks ahead to, and takes where the critic's does.
        """
        data = {name: x[k] for name, x in examples.items() if not name.startswith(OF_GENERATOR)}
        update = step * self.experiment.critic_steps + k
        with self._scope(step):
            if ahead:
                ahead.update(self.critic.ahead(update, data))
            self._critic_metrics, values = self.critic(update, data, ahead)
        return values

    def generator_update(self, step: tf.Tensor, examples: Tensors, ahead: Ahead | None = None) -> tf.Tensor:
        """As `iteration`, the generator's update alone: its metrics and the schedules' values, `(metrics,)` float32."""
        with self._scope(step):
            metrics, values = self.generator(step, _of_generator(examples), ahead)
            log = Log()
            for tag, schedule in self.state.schedules.items():
                log.add(tag, tf.cast(schedule.value(tf.cast(step, tf.float32), self.experiment.steps), tf.float32))
        self._generator_metrics = metrics + log.metrics
        return tf.stack([*tf.unstack(values), *log.values])

    def reduced(self, step: tf.Tensor, of_critic: tf.Tensor, of_generator: tf.Tensor) -> tf.Tensor:
        """The metrics of an iteration in the order of `self.metrics`, `(..., metrics)`, from those of its updates.

        Those of the critic are `(critic_steps, ..., metrics)`, those of the generator `(..., metrics)`.
        """
        self.metrics = self._critic_metrics + self._generator_metrics
        check_unique(self._critic_metrics, self._generator_metrics)
        values = over_updates(self._critic_metrics, of_critic, step * self.experiment.critic_steps)
        return tf.concat([values, of_generator], -1)

    @contextlib.contextmanager
    def _scope(self, step: tf.Tensor) -> Iterator[None]:
        steps = self.experiment.steps
        created, drawn = tf.variable_creator_scope(_no_variables), philox.composing(self._program, self._seed)
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


def _of_generator(examples: Tensors) -> Tensors:
    return {name.removeprefix(OF_GENERATOR): x for name, x in examples.items() if name.startswith(OF_GENERATOR)}


def _no_variables(create: Any, **arguments: Any) -> Any:
    # `plugin_code` adds whose code this is. Without this, TensorFlow raises an error that does not name the plugin.
    raise ValueError(
        "a variable is created inside the training step, which TensorFlow runs many times. Values kept between "
        "updates belong in initial_state and advance, trained ones in parameters: the core makes the variables"
    )
