"""One update of the critic on one replica."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.plugins.blame import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.training.graph import differentiation, noise
from ganlab.training.graph.assigning import assign_changed, check_buffers, project
from ganlab.training.graph.calls import witnessing
from ganlab.training.graph.constrained import Constrained, batch_of, draws_of
from ganlab.training.graph.gradients import Gradients, is_local, may_compile, rows_of
from ganlab.training.graph.loss_calls import LossCalls
from ganlab.training.graph.networks import CriticFunction
from ganlab.training.graph.objective import Objective, gradient
from ganlab.training.graph.ordering import after_reads
from ganlab.training.graph.parts import in_turn
from ganlab.training.graph.replica import Draws, Log, Metric
from ganlab.training.graph.state import TrainingState, assign
from ganlab.training.graph.values import Tensors, Values


class CriticUpdate:
    """The critic's update of one experiment over one state.

    Attributes:
        experiment: The experiment.
        state: The state.
        gradients: The part that computes the gradient.
    """

    def __init__(self, experiment: Experiment, state: TrainingState, *, compiled: bool) -> None:
        self.experiment, self.state = experiment, state
        self._networks, self._loss = Constrained(state), LossCalls(experiment.loss)
        self.gradients = Gradients(
            differentiation.explaining(self.part, state.critic),
            experiment,
            lambda values: values.critic_trained,
            compiled=compiled and may_compile(experiment, state.critic.synchronizes),
            shared=experiment.critic_steps > 1 and is_local(experiment, state.critic.synchronizes),
        )

    def __call__(self, step: tf.Tensor, k: tf.Tensor, data: Tensors) -> tuple[list[Metric], tf.Tensor]:
        """Trains the critic once; called in a replica's context.

        Args:
            step: The number of generator updates done, an int64 scalar.
            k: The number of the update among those of the iteration, an int64 scalar.
            data: This replica's `real`, and `labels` where there are some.

        Returns:
            Its metrics, and their local values, `(metrics,)` float32.
        """
        experiment, state, log = self.experiment, self.state, Log()
        draws = draws_of(experiment, step * experiment.critic_steps + k, experiment.local_batch)
        values = state.values()
        data, buffers = self.generated(draws, values, data)
        assign_changed(state.generator.buffers, buffers, values.generator_buffers)
        data = self.augmented(draws, values, data)
        values = self.advanced(draws, values, data, log)
        for group, advanced in zip(state.nest.states, values.states, strict=True):
            assign(group.values(), [advanced[key] for key in group])
        (gradients, buffers, scores, logged), metrics = self.gradients(values, data, draws)
        with plugin_code(selector_of(experiment.critic_optimizer), "apply"):
            state.critic_optimizer.apply(after_reads(gradients, values), state.critic_variables)
        assign_changed(state.critic.buffers, buffers, values.critic_buffers)
        project(state.stack, state.critic.weights)
        self._follow(draws, values, data, scores, log)
        return log.metrics + metrics, tf.stack([*log.values, *tf.unstack(logged)])

    def generated(self, draws: Draws, values: Values, data: Tensors) -> tuple[Tensors, Tensors]:
        """The data with latent vectors and samples, and the generator's buffers afterwards."""
        size = (draws.local_batch, int(self.experiment.architecture.latent_dim))
        data = {**data, "latent": draws.take("normal", size, noise.FAKE_LATENT)}
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
        generator, calls = self._networks.generator(draws, values, data, noise.FAKE_LAYERS)
        # A constraint that moves latent vectors uses the critic: nothing of that is part of the critic's gradient.
        fake = tf.stop_gradient(generator(data["latent"]))
        check_buffers(self.state.generator, draws, values.generator_buffers, calls.buffers)
        return fake, calls.buffers

    def augmented(self, draws: Draws, values: Values, data: Tensors) -> Tensors:
        """The data as the critic sees it."""
        augmentations = self.state.augmentations
        changed = {
            name: augmentations.apply(data[name], values.augmentations, draws, name) for name in ("real", "fake")
        }
        return {**data, **changed}

    def advanced(self, draws: Draws, values: Values, data: Tensors, log: Log) -> Values:
        """The values of the update, the states of its constraints advanced."""
        stack, functions = self.state.stack, dict[str, CriticFunction]()
        if stack.takes_critic:
            functions["critic"] = self._networks.critic(draws, values, data, noise.CRITIC_LAYERS)
        batch = batch_of(data, self.experiment.batch_size, draws)
        states = stack.advance(values.critic, values.parameters, values.states, batch, draws, log, **functions)
        return values._replace(states=states)

    def _follow(self, draws: Draws, values: Values, data: Tensors, scores: Any, log: Log) -> None:
        """Advances the states that follow the critic's scores: the loss's and the augmentations'."""
        nest = self.state.nest
        if nest.loss:
            batch = batch_of(data, self.experiment.batch_size, draws)
            advanced = self._loss.advance(values.loss, scores, batch, draws, log)
            assign(nest.loss.values(), [advanced[key] for key in nest.loss])
        if any(nest.augmentations):
            states = self.state.augmentations.advance(values.augmentations, scores[0], draws, log)
            for group, after in zip(nest.augmentations, states, strict=True):
                assign(group.values(), [after[key] for key in group])

    def part(
        self, draws: Draws, log: Log, values: Values, data: Tensors
    ) -> tuple[list[tf.Tensor], Tensors, tuple[tf.Tensor, ...]]:
        """The critic's gradient, in one tape: scores, loss, penalties.

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
        batch = batch_of(data, size, draws)
        with tf.GradientTape() as tape:
            tape.watch((values.critic, values.parameters))
            wrapped = self._networks.critic(draws, values, data, noise.CRITIC_LAYERS)
            model = wrapped.plain
            critic: CriticFunction = wrapped
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
                generator=lambda z: self._networks.generator(draws, values, data, noise.FAKE_LAYERS)[0](z),
            )
            weight_penalty = stack.weight_penalty(model.weights, values.parameters, values.states)
            objective = Objective(loss, penalty, weight_penalty)
            total = objective.total(size, self.experiment.replicas * self.experiment.microbatches)
        trained = values.critic_trained
        differentiation.check(total, trained, self.state.critic)
        gradients = gradient(tape, total, trained)
        objective.report("critic", log)
        log.add("critic/wasserstein", tf.reduce_mean(real_scores) - tf.reduce_mean(fake_scores))
        check_buffers(self.state.critic, draws, values.critic_buffers, model.buffers)
        return gradients, model.buffers, (real_scores, fake_scores)
