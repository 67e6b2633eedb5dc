"""One training iteration on one replica: the critic's updates, then the generator's.

Everything depends on one rule: a per-example loss is summed over the local batch and divided by the *global* batch
size, and the optimizer sums gradients over replicas. The logged losses are means over the local batch; their mean over
replicas is the mean over the global batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.errors import ContractError
from ganlab.interfaces import Batch
from ganlab.plugins.blame import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.training.graph import differentiation, noise
from ganlab.training.graph.gradients import Gradients, may_compile
from ganlab.training.graph.networks import Tensors, as_scores, static_shape
from ganlab.training.graph.replica import Draws, Log, Metric, ReplicaView
from ganlab.training.graph.state import TrainingState, assign, read


class TrainingStep:
    """The iteration of one experiment over one state.

    Attributes:
        metrics: The metrics that `iteration` returns, in order; known once it has been traced.
    """

    def __init__(self, experiment: Experiment, state: TrainingState, *, compiled: bool) -> None:
        self.experiment, self.state = experiment, state
        self.metrics: list[Metric] = []
        self._local, self._loss = experiment.local_batch, selector_of(experiment.loss)
        self._latent_shape = (self._local, int(experiment.architecture.latent_dim))
        compiled = compiled and may_compile(experiment, state.critic.synchronizes)
        critic_part = differentiation.explaining(self._critic_part, state.critic)
        self._critic_gradients = Gradients(critic_part, experiment, compiled=compiled)
        # The generator's gradient goes through both networks.
        compiled = compiled and may_compile(experiment, state.generator.synchronizes)
        generator_part = differentiation.explaining(self._generator_part, state.generator, state.critic)
        self._generator_gradients = Gradients(generator_part, experiment, compiled=compiled)

    def iteration(self, step: tf.Tensor, real: tf.Tensor) -> tf.Tensor:
        """Trains for one step; called in a replica's context.

        Args:
            step: The number of generator updates done, an int64 scalar.
            real: This replica's examples, `(critic_steps, local_batch, *sample_shape)`.

        Returns:
            The local value of every metric, float32, in the order of `self.metrics`.
        """
        with tf.variable_creator_scope(_no_variables):
            return self._iteration(step, real)

    def _iteration(self, step: tf.Tensor, real: tf.Tensor) -> tf.Tensor:
        critic_steps = self.experiment.critic_steps
        # Unrolled: an optimizer cannot be applied inside a loop within a replica's function.
        logs = [self._update_critic(step * critic_steps + k, real[k]) for k in range(critic_steps)]
        metrics, values = logs[0][0], _over_updates(logs, step * critic_steps)
        generator_metrics, generator_values = self._update_generator(step)
        self.metrics = metrics + generator_metrics
        _check_unique(self.metrics)
        return tf.stack([*values, *tf.unstack(generator_values)])

    @property
    def compiled(self) -> list[str]:
        """The networks, "critic" and "generator", whose gradients XLA compiles; known once `iteration` is traced."""
        parts = {"critic": self._critic_gradients, "generator": self._generator_gradients}
        return [name for name, gradients in parts.items() if gradients.compiled]

    @property
    def communicates(self) -> str:
        """The constraint whose penalty talks to other replicas; empty where none does, or before the step is traced."""
        return self._critic_gradients.communicates

    def _draws(self, step: tf.Tensor) -> Draws:
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        return Draws(self.experiment.seed, self._local, step, tf.convert_to_tensor(replica, tf.int32))

    def _update_critic(self, update: tf.Tensor, real: tf.Tensor) -> tuple[list[Metric], tf.Tensor]:
        state, draws = self.state, self._draws(update)
        latent = draws.take("normal", self._latent_shape, noise.FAKE_LATENT)
        fake, buffers = state.generator(
            latent,
            read(state.generator.weights),
            read(state.generator.buffers),
            noise=ReplicaView("generator", noise.FAKE_LAYERS, draws, None),
        )
        _assign_changed(state.generator.buffers, buffers)
        batch = Batch(real=real, fake=fake, labels=None, size=self.experiment.batch_size, step=update)
        weights = read(state.critic.weights)
        parameters = [read(group) for group in state.parameters]
        states = [read(group) for group in state.constraint_states]
        log = Log()
        states = state.stack.advance(weights, parameters, states, batch, draws, log)
        for group, values in zip(state.constraint_states, states, strict=True):
            assign(group.values(), [values[key] for key in group])
        (gradients, critic_buffers, values), metrics = self._critic_gradients(
            weights, parameters, states, read(state.critic.buffers), real, fake, step=update, replica=draws.replica
        )
        with plugin_code(selector_of(self.experiment.critic_optimizer), "apply"):
            state.critic_optimizer.apply(gradients, state.critic_variables)
        _assign_changed(state.critic.buffers, critic_buffers)
        if state.stack.overrides_projection:
            weights = read(state.critic.weights)
            _assign_changed(state.critic.weights, state.stack.project(weights), weights)
        return log.metrics + metrics, tf.stack([*log.values, *tf.unstack(values)])

    def _critic_part(
        self,
        draws: Draws,
        log: Log,
        weights: Tensors,
        parameters: list[Tensors],
        states: list[Tensors],
        buffers: Tensors,
        real: tf.Tensor,
        fake: tf.Tensor,
    ) -> tuple[list[tf.Tensor], Tensors]:
        size, stack = self.experiment.batch_size, self.state.stack
        batch = Batch(real=real, fake=fake, labels=None, size=size, step=draws.step)
        with tf.GradientTape() as tape:
            tape.watch((weights, parameters))
            effective = stack.effective(weights, parameters, states)
            model = _CriticCalls(self.state, effective, buffers, draws, noise.CRITIC_LAYERS)
            critic = stack.transform(model)
            real_scores, fake_scores = critic(real), critic(fake)
            model.keeps_buffers = False  # the buffers from a penalty's calls are dropped
            with plugin_code(self._loss, "critic"):
                loss = tf.convert_to_tensor(self.experiment.loss.critic(real_scores, fake_scores))
            _check_loss(self.experiment, "critic", loss, self._local)
            penalty = stack.penalties(critic, batch, parameters, states, draws, log)
            weight_penalty = stack.weight_penalty(effective)
            total = tf.reduce_sum(loss if penalty is None else loss + penalty) / size
            if weight_penalty is not None:
                # The same on every replica, and the optimizer sums over replicas.
                total += weight_penalty / self.experiment.replicas
        trained = [*weights.values(), *(value for group in parameters for value in group.values())]
        differentiation.check(total, trained, self.state.critic)
        gradients = _gradient(tape, total, trained)
        extra = tf.constant(0.0) if weight_penalty is None else weight_penalty
        if penalty is not None or weight_penalty is not None:
            mean = tf.reduce_mean(penalty) + extra if penalty is not None else extra
            log.add("critic/penalty", mean)
            log.add("critic/loss", tf.reduce_mean(loss) + mean)
        else:
            log.add("critic/loss", tf.reduce_mean(loss))
        log.add("critic/wasserstein", tf.reduce_mean(real_scores) - tf.reduce_mean(fake_scores))
        return gradients, model.buffers

    def _update_generator(self, step: tf.Tensor) -> tuple[list[Metric], tf.Tensor]:
        state, draws = self.state, self._draws(step)
        latent = draws.take("normal", self._latent_shape, noise.LATENT)
        (gradients, buffers, values), metrics = self._generator_gradients(
            read(state.generator.weights),
            read(state.generator.buffers),
            read(state.critic.weights),
            read(state.critic.buffers),
            [read(group) for group in state.parameters],
            [read(group) for group in state.constraint_states],
            latent,
            step=step,
            replica=draws.replica,
        )
        with plugin_code(selector_of(self.experiment.generator_optimizer), "apply"):
            state.generator_optimizer.apply(gradients, list(state.generator.weights.values()))
        _assign_changed(state.generator.buffers, buffers)
        if state.average:
            decay = _average_decay(self.experiment.ema_decay, step)
            weights, average = read(state.generator.weights), read(state.average)
            moved = [average[name] + (1.0 - decay) * (weights[name] - average[name]) for name in average]
            assign(state.average.values(), moved)
        return metrics, values

    def _generator_part(
        self,
        draws: Draws,
        log: Log,
        weights: Tensors,
        buffers: Tensors,
        critic_weights: Tensors,
        critic_buffers: Tensors,
        parameters: list[Tensors],
        states: list[Tensors],
        latent: tf.Tensor,
    ) -> tuple[list[tf.Tensor], Tensors]:
        effective = self.state.stack.effective(critic_weights, parameters, states)
        model = _CriticCalls(self.state, effective, critic_buffers, draws, noise.LAYERS)
        critic = self.state.stack.transform(model)
        view = ReplicaView("generator", noise.LAYERS, draws, None)
        with tf.GradientTape() as tape:
            tape.watch(weights)
            fake, left = self.state.generator(latent, weights, buffers, noise=view)
            scores = critic(fake)
            with plugin_code(self._loss, "generator"):
                loss = tf.convert_to_tensor(self.experiment.loss.generator(scores))
            _check_loss(self.experiment, "generator", loss, self._local)
            total = tf.reduce_sum(loss) / self.experiment.batch_size
        differentiation.check(total, list(weights.values()), self.state.generator, self.state.critic)
        log.add("generator/loss", tf.reduce_mean(loss))
        return list(tape.gradient(total, weights, unconnected_gradients="zero").values()), left


def _gradient(tape: tf.GradientTape, total: tf.Tensor, trained: list[tf.Tensor]) -> list[tf.Tensor]:
    """The gradient of the critic's total: from the graph if there is one, because that skips terms that are zero."""
    if tf.executing_eagerly():
        return tape.gradient(total, trained, unconnected_gradients="zero")
    return tf.gradients(total, trained, unconnected_gradients="zero")


class _CriticCalls:
    """The critic of the contract before any constraint wraps it: `(n, *sample_shape) -> (n,)` float32."""

    def __init__(self, state: TrainingState, effective: Tensors, buffers: Tensors, draws: Draws, stream: int) -> None:
        self._network, self._effective = state.critic, effective
        self._noise = ReplicaView("critic", stream, draws, None)
        self.buffers, self.keeps_buffers = buffers, True

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        y, buffers = self._network(x, self._effective, self.buffers, noise=self._noise)
        if self.keeps_buffers:
            self.buffers = buffers
        return as_scores(y)


def _assign_changed(variables: dict[str, Any], values: Tensors, before: Tensors | None = None) -> None:
    changed = [name for name in variables if before is None or values[name] is not before[name]]
    assign([variables[name] for name in changed], [values[name] for name in changed])


def _average_decay(decay: float, step: tf.Tensor) -> tf.Tensor:
    # Early on the average follows quickly; otherwise it would remember the initial weights for 1 / (1 - decay) steps.
    done = tf.cast(step, tf.float32)
    return tf.minimum(tf.constant(decay, tf.float32), (1.0 + done) / (10.0 + done))


def _over_updates(logs: list[tuple[list[Metric], tf.Tensor]], first: tf.Tensor) -> list[tf.Tensor]:
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


def _check_loss(experiment: Experiment, method: str, value: tf.Tensor, local: int) -> None:
    if static_shape(value) != (local,):
        raise ContractError(
            f"Loss {type(experiment.loss).__name__}.{method} returned the shape {static_shape(value)}; it must be one "
            f"value per example, ({local},). Do not reduce over the batch: the core divides by the global batch size."
        )


def _no_variables(create: Any, **arguments: Any) -> Any:
    # `plugin_code` adds whose code this is. Without this, TensorFlow raises an error that does not name the plugin.
    raise ValueError(
        "a variable is created inside the training step, which TensorFlow runs many times. Values kept between "
        "updates belong in initial_state and advance, trained ones in parameters: the core makes the variables"
    )


def _check_unique(metrics: list[Metric]) -> None:
    tags = [metric.tag for metric in metrics]
    twice = sorted({tag for tag in tags if tags.count(tag) > 1})
    if twice:
        raise ContractError(f"The metric {twice[0]!r} was logged twice in one update. Give each a name of its own.")
