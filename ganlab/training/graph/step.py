"""One training iteration on one replica: the critic's updates, then the generator's.

Everything depends on one rule: a per-example loss is summed over the local batch and divided by the *global* batch
size, and the optimizer sums gradients over replicas. The logged losses are means over the local batch; their mean over
replicas is the mean over the global batch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.errors import IncompatibleError
from ganlab.interfaces import Batch
from ganlab.plugins import scheduled
from ganlab.plugins.blame import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.training.graph import differentiation, noise
from ganlab.training.graph.calls import CriticCalls, GeneratorCalls, WrappedCritic, witnessing
from ganlab.training.graph.collectives import without_searches
from ganlab.training.graph.gradients import Gradients, is_local, may_compile, rows_of
from ganlab.training.graph.inputs import OF_GENERATOR
from ganlab.training.graph.loss_calls import LossCalls
from ganlab.training.graph.networks import CriticFunction, Network
from ganlab.training.graph.objective import Objective, dense, gradient
from ganlab.training.graph.ordering import after_reads
from ganlab.training.graph.parts import in_turn
from ganlab.training.graph.replica import Draws, Log, Metric
from ganlab.training.graph.stack import ConstraintStack
from ganlab.training.graph.state import TrainingState, assign, read
from ganlab.training.graph.update_metrics import check_unique, over_updates
from ganlab.training.graph.values import Tensors, Values


class TrainingStep:
    """The iteration of one experiment over one state.

    Attributes:
        metrics: The metrics that `iteration` returns, in order; known once it has been traced.
    """

    def __init__(self, experiment: Experiment, state: TrainingState, *, compiled: bool) -> None:
        self.experiment, self.state = experiment, state
        self.metrics: list[Metric] = []
        self._critic_metrics: list[Metric] = []
        self._generator_metrics: list[Metric] = []
        self._local, self._generated = experiment.local_batch, experiment.local_generator_batch
        self._latent_dim = int(experiment.architecture.latent_dim)
        self._shares = experiment.replicas * experiment.microbatches
        self._loss = LossCalls(experiment.loss)
        _check_parts(experiment, state)
        compiled = compiled and may_compile(experiment, state.critic.synchronizes)
        shared = experiment.critic_steps > 1 and is_local(experiment, state.critic.synchronizes)
        critic_part = differentiation.explaining(self.critic_part, state.critic)
        self._critic_gradients = Gradients(
            critic_part, experiment, lambda v: v.critic_trained, compiled=compiled, shared=shared
        )
        # The generator's gradient goes through both networks.
        compiled = compiled and may_compile(experiment, state.generator.synchronizes)
        generator_part = differentiation.explaining(self.generator_part, state.generator, state.critic)
        self._generator_gradients = Gradients(
            generator_part, experiment, lambda v: v.generator_trained, compiled=compiled, shared=False
        )

    def iteration(self, step: tf.Tensor, examples: Tensors) -> tf.Tensor:
        """Trains for one step; called in a replica's context.

        Args:
            step: The number of generator updates done, an int64 scalar.
            examples: This replica's examples: `real` and `labels` of each critic update, `(critic_steps, local_batch,
                ...)`, and what the generator's update needs, `generator/real` and `generator/labels`.

        Returns:
            The local value of every metric, float32, in the order of `self.metrics`.
        """
        # Unrolled: an optimizer cannot be applied inside a loop within a replica's function.
        updates = range(self.experiment.critic_steps)
        of_critic = tf.stack([self.critic_update(step, tf.constant(k, tf.int64), examples) for k in updates])
        return self.reduced(step, of_critic, self.generator_update(step, examples))

    def critic_update(self, step: tf.Tensor, k: tf.Tensor, examples: Tensors) -> tf.Tensor:
        """Trains the critic once; called in a replica's context.

        Args:
            step: The number of generator updates done, an int64 scalar.
            k: The number of the critic's update among those of the iteration, an int64 scalar.
            examples: As for `iteration`.

        Returns:
            The local value of each of its metrics, `(metrics,)` float32.
        """
        data = {name: x[k] for name, x in examples.items() if not name.startswith(OF_GENERATOR)}
        with self._scope(step):
            self._critic_metrics, values = self._update_critic(step, k, data)
        return values

    def generator_update(self, step: tf.Tensor, examples: Tensors) -> tf.Tensor:
        """Trains the generator once; called in a replica's context.

        Args:
            step: The number of generator updates done, an int64 scalar.
            examples: As for `iteration`.

        Returns:
            The local value of each of its metrics, and of the schedules, `(metrics,)` float32.
        """
        data = {name.removeprefix(OF_GENERATOR): x for name, x in examples.items() if name.startswith(OF_GENERATOR)}
        with self._scope(step):
            metrics, values = self._update_generator(step, data)
            log = Log()
            for tag, schedule in self.state.schedules.items():
                log.add(tag, tf.cast(schedule.value(tf.cast(step, tf.float32), self.experiment.steps), tf.float32))
        self._generator_metrics = metrics + log.metrics
        return tf.stack([*tf.unstack(values), *log.values])

    def reduced(self, step: tf.Tensor, of_critic: tf.Tensor, of_generator: tf.Tensor) -> tf.Tensor:
        """The metrics of an iteration.

        Args:
            step: The number of generator updates done, an int64 scalar.
            of_critic: Those of its critic updates, `(critic_steps, ..., metrics)`.
            of_generator: Those of its generator update, `(..., metrics)`.

        Returns:
            All of them in the order of `self.metrics`, `(..., metrics)`.
        """
        self.metrics = self._critic_metrics + self._generator_metrics
        check_unique(self.metrics)
        values = over_updates(self._critic_metrics, of_critic, step * self.experiment.critic_steps)
        return tf.concat([values, of_generator], -1)

    @contextlib.contextmanager
    def _scope(self, step: tf.Tensor) -> Iterator[None]:
        with tf.variable_creator_scope(_no_variables), scheduled.at(step, self.experiment.steps), without_searches():
            yield

    @property
    def compiled(self) -> list[str]:
        """The networks, "critic" and "generator", whose gradients XLA compiles; known once `iteration` is traced."""
        parts = {"critic": self._critic_gradients, "generator": self._generator_gradients}
        return [name for name, gradients in parts.items() if gradients.compiled]

    @property
    def communicates(self) -> str:
        """The name, in messages, of what communicates in a part that XLA could compile; empty if nothing does."""
        return self._critic_gradients.communicates or self._generator_gradients.communicates

    def _draws(self, update: tf.Tensor, rows: int) -> Draws:
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        return Draws(self.experiment.seed, rows, update, tf.convert_to_tensor(replica, tf.int32))

    def _update_critic(self, step: tf.Tensor, k: tf.Tensor, data: Tensors) -> tuple[list[Metric], tf.Tensor]:
        state, update = self.state, step * self.experiment.critic_steps + k
        draws, values, log = self._draws(update, self._local), state.values(), Log()
        data, buffers = self.generated(draws, values, data)
        _assign_changed(state.generator.buffers, buffers, values.generator_buffers)
        data = self.augmented(draws, values, data)
        values = self.advanced(draws, values, data, log)
        for group, advanced in zip(state.nest.states, values.states, strict=True):
            assign(group.values(), [advanced[key] for key in group])
        (gradients, buffers, scores, logged), metrics = self._critic_gradients(values, data, draws)
        with plugin_code(selector_of(self.experiment.critic_optimizer), "apply"):
            state.critic_optimizer.apply(after_reads(gradients, values), state.critic_variables)
        _assign_changed(state.critic.buffers, buffers, values.critic_buffers)
        _project(state.stack, state.critic.weights)
        self._follow(draws, values, data, scores, log)
        return log.metrics + metrics, tf.stack([*log.values, *tf.unstack(logged)])

    def generated(self, draws: Draws, values: Values, data: Tensors) -> tuple[Tensors, Tensors]:
        """The data of a critic update with its latent vectors and samples, and the generator's buffers afterwards."""
        latent = draws.take("normal", (draws.local_batch, self._latent_dim), noise.FAKE_LATENT)
        data = {**data, "latent": latent}
        parts = self.experiment.microbatches
        if parts == 1:
            fake, buffers = self._samples(draws, values, data)
            return {**data, "fake": fake}, buffers
        rows = draws.local_batch // parts

        def body(i: tf.Tensor, samples: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
            piece = {name: rows_of(x, i, rows) for name, x in data.items()}
            return i + 1, samples.write(i, self._samples(draws.part(i, rows), values, piece)[0])

        (samples,) = in_turn(parts, body, (tf.TensorArray(tf.float32, size=parts),))
        shape = [draws.local_batch, *self.experiment.dataset.sample_shape]
        fake = tf.stop_gradient(tf.reshape(samples.stack(), shape))
        return {**data, "fake": fake}, values.generator_buffers

    def _samples(self, draws: Draws, values: Values, data: Tensors) -> tuple[tf.Tensor, Tensors]:
        generator, calls = self._generator_calls(draws, values, data, noise.FAKE_LAYERS)
        # A constraint that moves latent vectors uses the critic: nothing of that is part of the critic's gradient.
        fake = tf.stop_gradient(generator(data["latent"]))
        _check_buffers(self.state.generator, draws, values.generator_buffers, calls.buffers)
        return fake, calls.buffers

    def augmented(self, draws: Draws, values: Values, data: Tensors) -> Tensors:
        """The data of a critic update as the critic sees it."""
        augmentations = self.state.augmentations
        changed = {
            name: augmentations.apply(data[name], values.augmentations, draws, name) for name in ("real", "fake")
        }
        return {**data, **changed}

    def advanced(self, draws: Draws, values: Values, data: Tensors, log: Log) -> Values:
        """The values of a critic update, the states of its constraints advanced."""
        stack, functions = self.state.stack, dict[str, CriticFunction]()
        if stack.takes_critic:
            functions["critic"] = self._critic_calls(draws, values, data, noise.CRITIC_LAYERS)
        batch = self._batch(draws, data, self.experiment.batch_size)
        states = stack.advance(values.critic, values.parameters, values.states, batch, draws, log, **functions)
        return values._replace(states=states)

    def _follow(self, draws: Draws, values: Values, data: Tensors, scores: Any, log: Log) -> None:
        """Advances the states that follow the critic's scores: the loss's and the augmentations'."""
        nest = self.state.nest
        if nest.loss:
            batch = self._batch(draws, data, self.experiment.batch_size)
            advanced = self._loss.advance(values.loss, scores, batch, draws, log)
            assign(nest.loss.values(), [advanced[key] for key in nest.loss])
        if any(nest.augmentations):
            states = self.state.augmentations.advance(values.augmentations, scores[0], draws, log)
            for group, after in zip(nest.augmentations, states, strict=True):
                assign(group.values(), [after[key] for key in group])

    def critic_part(
        self, draws: Draws, log: Log, values: Values, data: Tensors
    ) -> tuple[list[tf.Tensor], Tensors, tuple[tf.Tensor, ...]]:
        """The critic's gradient.

        Args:
            draws: The source of random numbers.
            log: Takes the metrics.
            values: The values of all variables, the constraints' states advanced.
            data: `real`, `fake` and `latent` of these rows, and `labels` where there are some.

        Returns:
            The gradient by `values.critic_trained`, the critic's buffers, and the scores of real and fake.
        """
        size, stack = self.experiment.batch_size, self.state.stack
        real, fake = data["real"], data["fake"]
        batch = self._batch(draws, data, size)
        with tf.GradientTape() as tape:
            tape.watch((values.critic, values.parameters))
            effective = stack.effective(values.critic, values.parameters, values.states)
            model = CriticCalls(
                self.state.critic, effective, values.critic_buffers, data.get("labels"), draws, noise.CRITIC_LAYERS
            )
            critic = stack.transform(model, draws)
            real_scores = critic(real)
            real_outputs = model.outputs(real, real_scores)
            fake_scores = critic(fake)
            seen = replace(batch, real_outputs=real_outputs, fake_outputs=model.outputs(fake, fake_scores))
            model.keeps_buffers = False  # the buffers from a penalty's calls are dropped
            loss = self._loss.critic(real_scores, fake_scores, seen, values.loss, draws, log)
            witness = self._loss.witness(seen, draws)
            if witness is not None:
                real_scores, fake_scores = witness(seen.real_outputs), witness(seen.fake_outputs)
                critic = witnessing(witness, model, critic)
            penalty = stack.penalties(
                batch,
                values.parameters,
                values.states,
                draws,
                log,
                critic=critic,
                generator=lambda z: self._generator_calls(draws, values, data, noise.FAKE_LAYERS)[0](z),
            )
            weight_penalty = stack.weight_penalty(effective, values.parameters, values.states)
            objective = Objective(loss, penalty, weight_penalty)
            total = objective.total(size, self._shares)
        trained = values.critic_trained
        differentiation.check(total, trained, self.state.critic)
        gradients = gradient(tape, total, trained)
        objective.report("critic", log)
        log.add("critic/wasserstein", tf.reduce_mean(real_scores) - tf.reduce_mean(fake_scores))
        _check_buffers(self.state.critic, draws, values.critic_buffers, model.buffers)
        return gradients, model.buffers, (real_scores, fake_scores)

    def _update_generator(self, step: tf.Tensor, data: Tensors) -> tuple[list[Metric], tf.Tensor]:
        state, draws, log = self.state, self._draws(step, self._generated), Log()
        values = state.values()
        latent = draws.take("normal", (self._generated, self._latent_dim), noise.LATENT)
        data = {**data, "latent": latent}
        values = self.generator_advanced(draws, values, data, log)
        for group, advanced in zip(state.nest.generator_states, values.generator_states, strict=True):
            assign(group.values(), [advanced[key] for key in group])
        (gradients, buffers, _, logged), metrics = self._generator_gradients(values, data, draws)
        with plugin_code(selector_of(self.experiment.generator_optimizer), "apply"):
            state.generator_optimizer.apply(after_reads(gradients, values), state.generator_variables)
        _assign_changed(state.generator.buffers, buffers, values.generator_buffers)
        _project(state.generator_stack, state.generator.weights)
        if state.average:
            decay = _average_decay(self.experiment, step)
            pairs = [(state.average, state.generator.weights)]
            pairs += zip(state.average_parameters, state.nest.generator_parameters, strict=True)
            for average, weights in pairs:
                now, before = read(weights), read(average)
                moved = [before[name] + (1.0 - decay) * (now[name] - before[name]) for name in average]
                assign(average.values(), moved)
        return log.metrics + metrics, tf.stack([*log.values, *tf.unstack(logged)])

    def generator_advanced(self, draws: Draws, values: Values, data: Tensors, log: Log) -> Values:
        """The values of a generator update, the states of the generator's constraints advanced."""
        stack, functions = self.state.generator_stack, dict[str, CriticFunction]()
        if not stack.constraints:
            return values
        if stack.takes_critic:
            functions["critic"] = self._critic_calls(draws, values, data, noise.LAYERS)
        if stack.takes_generator:
            functions["generator"], _ = self._generator_calls(draws, values, data, noise.LAYERS)
        batch = self._batch(draws, data, self.experiment.generator_batch)
        states = stack.advance(
            values.generator, values.generator_parameters, values.generator_states, batch, draws, log, **functions
        )
        return values._replace(generator_states=states)

    def generator_part(
        self, draws: Draws, log: Log, values: Values, data: Tensors
    ) -> tuple[list[tf.Tensor], Tensors, tuple[tf.Tensor, ...]]:
        """The generator's gradient.

        Args:
            draws: The source of random numbers.
            log: Takes the metrics.
            values: The values of all variables, the constraints' states advanced.
            data: `latent` of these rows; `labels` where there are some; `real` where the loss pairs.

        Returns:
            The gradient by `values.generator_trained`, the generator's buffers, and no scores.
        """
        size, stack = self.experiment.generator_batch, self.state.generator_stack
        critic = self._critic_calls(draws, values, data, noise.LAYERS)
        model = critic.plain
        with tf.GradientTape() as tape:
            tape.watch((values.generator, values.generator_parameters))
            generator, calls = self._generator_calls(draws, values, data, noise.LAYERS)
            fake = generator(data["latent"])
            seen = self.state.augmentations.apply(fake, values.augmentations, draws, "generator")
            scores = critic(seen)
            batch = self._batch(draws, data, size)
            paired = replace(batch, fake=seen, fake_outputs=model.outputs(seen, scores))
            real_scores = None
            if self.experiment.loss.pairs:
                real = self.state.augmentations.apply(data["real"], values.augmentations, draws, "paired")
                real_scores = critic(real)
                batch = replace(batch, real=real)
                paired = replace(paired, real=real, real_outputs=model.outputs(real, real_scores))
            loss = self._loss.generator(scores, real_scores, paired, values.loss, draws, log)
            calls.keeps_buffers = False
            penalty = stack.penalties(
                replace(batch, fake=fake),
                values.generator_parameters,
                values.generator_states,
                draws,
                log,
                critic=critic,
                generator=generator,
            )
            weight_penalty = stack.weight_penalty(calls.weights, values.generator_parameters, values.generator_states)
            objective = Objective(loss, penalty, weight_penalty)
            total = objective.total(size, self._shares)
        trained = values.generator_trained
        differentiation.check(total, trained, self.state.generator, self.state.critic)
        objective.report("generator", log)
        _check_buffers(self.state.generator, draws, values.generator_buffers, calls.buffers)
        return [dense(g) for g in tape.gradient(total, trained, unconnected_gradients="zero")], calls.buffers, ()

    def _critic_calls(self, draws: Draws, values: Values, data: Tensors, stream: int) -> WrappedCritic:
        """The critic as constrained, without the gradient of its weights."""
        stack = self.state.stack
        effective = stack.effective(values.critic, values.parameters, values.states)
        model = CriticCalls(self.state.critic, effective, values.critic_buffers, data.get("labels"), draws, stream)
        return WrappedCritic(model, stack.transform(model, draws))

    def _generator_calls(
        self, draws: Draws, values: Values, data: Tensors, stream: int
    ) -> tuple[CriticFunction, GeneratorCalls]:
        """The generator as constrained, and its plain calls."""
        stack = self.state.generator_stack
        effective = stack.effective(values.generator, values.generator_parameters, values.generator_states)
        network, buffers = self.state.generator, values.generator_buffers
        calls = GeneratorCalls(network, effective, buffers, data.get("labels"), draws, stream)
        return stack.transform(calls, draws, critic=lambda x: self._critic_calls(draws, values, data, stream)(x)), calls

    def _batch(self, draws: Draws, data: Tensors, size: int) -> Batch:
        return Batch(
            real=data.get("real"),
            fake=data.get("fake"),
            labels=data.get("labels"),
            size=size,
            step=draws.step,
            latent=data["latent"],
        )


def _project(stack: ConstraintStack, variables: dict[str, Any]) -> None:
    if stack.overrides_projection:
        weights = read(variables)
        _assign_changed(variables, stack.project(weights), weights)


def _check_parts(experiment: Experiment, state: TrainingState) -> None:
    """Refuses microbatches where a layer takes statistics of the whole batch."""
    layer = state.critic.synchronizes or state.generator.synchronizes
    if experiment.microbatches > 1 and layer:
        raise _mixing(layer)


def _check_buffers(network: Network, draws: Draws, before: Tensors, after: Tensors) -> None:
    changed = [name for name, value in before.items() if after[name] is not value]
    if changed and not draws.whole:
        raise _mixing(f"The {network.role}'s {changed[0]!r}")


def _mixing(what: str) -> IncompatibleError:
    return IncompatibleError(
        f"{what} takes statistics of the whole batch, which its parts do not know. Set experiment.microbatches = 1, or "
        "use a layer that normalizes each example alone, for example ganlab.layers.LayerNormalization."
    )


def _assign_changed(variables: dict[str, Any], values: Tensors, before: Tensors | None = None) -> None:
    changed = [name for name in variables if before is None or values[name] is not before[name]]
    assign([variables[name] for name in changed], [values[name] for name in changed])


def _average_decay(experiment: Experiment, step: tf.Tensor) -> tf.Tensor:
    decay = tf.constant(experiment.averaging, tf.float32)
    if experiment.ema_start:
        return tf.where(step < experiment.ema_start, 0.0, decay)
    # Early on the average follows quickly; otherwise it would remember the initial weights for 1 / (1 - decay) steps.
    done = tf.cast(step, tf.float32)
    return tf.minimum(decay, (1.0 + done) / (10.0 + done))


def _no_variables(create: Any, **arguments: Any) -> Any:
    # `plugin_code` adds whose code this is. Without this, TensorFlow raises an error that does not name the plugin.
    raise ValueError(
        "a variable is created inside the training step, which TensorFlow runs many times. Values kept between "
        "updates belong in initial_state and advance, trained ones in parameters: the core makes the variables"
    )
