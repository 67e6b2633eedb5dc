"""One update of the generator on one replica."""

from __future__ import annotations

from dataclasses import replace

import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.plugins.blame import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.training.graph import differentiation, noise
from ganlab.training.graph.assigning import assign_changed, check_buffers, project
from ganlab.training.graph.constrained import Constrained, batch_of, draws_of
from ganlab.training.graph.gradients import Gradients, may_compile
from ganlab.training.graph.loss_calls import LossCalls
from ganlab.training.graph.networks import CriticFunction
from ganlab.training.graph.objective import Objective, dense
from ganlab.training.graph.ordering import after_reads
from ganlab.training.graph.replica import Draws, Log, Metric
from ganlab.training.graph.state import TrainingState, assign, read
from ganlab.training.graph.values import Tensors, Values


class GeneratorUpdate:
    """The generator's update of one experiment over one state.

    Attributes:
        experiment: The experiment.
        state: The state.
        gradients: The part that computes the gradient.
    """

    def __init__(self, experiment: Experiment, state: TrainingState, *, compiled: bool) -> None:
        self.experiment, self.state = experiment, state
        self._networks, self._loss = Constrained(state), LossCalls(experiment.loss)
        # The gradient goes through both networks.
        synchronizes = state.critic.synchronizes or state.generator.synchronizes
        self.gradients = Gradients(
            differentiation.explaining(self.part, state.generator, state.critic),
            experiment,
            lambda values: values.generator_trained,
            compiled=compiled and may_compile(experiment, synchronizes),
            shared=False,
        )

    def __call__(self, step: tf.Tensor, data: Tensors) -> tuple[list[Metric], tf.Tensor]:
        """Trains the generator once; called in a replica's context.

        Args:
            step: The number of generator updates done, an int64 scalar.
            data: `labels` of this replica's rows where there are some, and `real` where the loss pairs.

        Returns:
            Its metrics, and their local values, `(metrics,)` float32.
        """
        experiment, state, log = self.experiment, self.state, Log()
        rows, values = experiment.local_generator_batch, state.values()
        draws = draws_of(experiment, step, rows)
        data = {**data, "latent": draws.take("normal", (rows, int(experiment.architecture.latent_dim)), noise.LATENT)}
        values = self.advanced(draws, values, data, log)
        for group, advanced in zip(state.nest.generator_states, values.generator_states, strict=True):
            assign(group.values(), [advanced[key] for key in group])
        (gradients, buffers, _, logged), metrics = self.gradients(values, data, draws)
        with plugin_code(selector_of(experiment.generator_optimizer), "apply"):
            state.generator_optimizer.apply(after_reads(gradients, values), state.generator_variables)
        assign_changed(state.generator.buffers, buffers, values.generator_buffers)
        project(state.generator_stack, state.generator.weights)
        if state.average:
            self._average(step)
        return log.metrics + metrics, tf.stack([*log.values, *tf.unstack(logged)])

    def advanced(self, draws: Draws, values: Values, data: Tensors, log: Log) -> Values:
        """The values of the update, the states of the generator's constraints advanced."""
        stack, functions = self.state.generator_stack, dict[str, CriticFunction]()
        if not stack.constraints:
            return values
        if stack.takes_critic:
            functions["critic"] = self._networks.critic(draws, values, data, noise.LAYERS)
        if stack.takes_generator:
            functions["generator"], _ = self._networks.generator(draws, values, data, noise.LAYERS)
        batch = batch_of(data, self.experiment.generator_batch, draws)
        states = stack.advance(
            values.generator, values.generator_parameters, values.generator_states, batch, draws, log, **functions
        )
        return values._replace(generator_states=states)

    def part(
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
        critic = self._networks.critic(draws, values, data, noise.LAYERS)
        model = critic.plain
        with tf.GradientTape() as tape:
            tape.watch((values.generator, values.generator_parameters))
            generator, calls = self._networks.generator(draws, values, data, noise.LAYERS)
            fake = generator(data["latent"])
            seen = self.state.augmentations.apply(fake, values.augmentations, draws, "generator")
            scores = critic(seen)
            batch = batch_of(data, size, draws)
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
            total = objective.total(size, self.experiment.replicas * self.experiment.microbatches)
        trained = values.generator_trained
        differentiation.check(total, trained, self.state.generator, self.state.critic)
        objective.report("generator", log)
        check_buffers(self.state.generator, draws, values.generator_buffers, calls.buffers)
        return [dense(g) for g in tape.gradient(total, trained, unconnected_gradients="zero")], calls.buffers, ()

    def _average(self, step: tf.Tensor) -> None:
        """Moves the average of the weights towards them."""
        decay = _average_decay(self.experiment, step)
        for average, variables in self.state.averaged():
            now, before = read(variables), read(average)
            assign(average.values(), [_moved(before[name], now[name], decay) for name in average])


def _moved(before: tf.Tensor, now: tf.Tensor, decay: tf.Tensor) -> tf.Tensor:
    """An average after a step; whole numbers, such as a layer's count of calls, are taken as they are."""
    return before + (1.0 - decay) * (now - before) if now.dtype.is_floating else now


def _average_decay(experiment: Experiment, step: tf.Tensor) -> tf.Tensor:
    decay = tf.constant(experiment.averaging, tf.float32)
    if experiment.ema_start:
        return tf.where(step < experiment.ema_start, 0.0, decay)
    # Early on the average follows quickly; otherwise it would remember the initial weights for 1 / (1 - decay) steps.
    done = tf.cast(step, tf.float32)
    return tf.minimum(decay, (1.0 + done) / (10.0 + done))
