"""One update of the generator on one replica."""

from __future__ import annotations

from dataclasses import replace

import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.training.graph import differentiation, noise
from ganlab.training.graph.objective import Objective, dense
from ganlab.training.graph.players import Player
from ganlab.training.graph.replica import Draws, Log, Metric
from ganlab.training.graph.roles import CRITIC, GENERATOR
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.update import Update, batch_of
from ganlab.training.graph.values import Tensors, Values
from ganlab.training.graph.variables import assign, read


class GeneratorUpdate(Update):
    """The update of the generator and of what is trained with it."""

    side, stream = GENERATOR, noise.LAYERS

    def __init__(self, experiment: Experiment, state: TrainingState, *, compiled: bool) -> None:
        super().__init__(experiment, state, size=experiment.generator_batch, through=[state.critic], compiled=compiled)

    def __call__(self, step: tf.Tensor, data: Tensors) -> tuple[list[Metric], tf.Tensor]:
        """Trains the generator once; called in a replica's context.

        Args:
            step: The number of generator updates done, an int64 scalar.
            data: `labels` of this replica's rows where there are some, and `real` where the loss pairs.

        Returns:
            Its metrics, and their local values, `(metrics,)` float32.
        """
        log, values, draws = Log(), self.state.values(), self._draws(step)
        data = {**data, "latent": self._latents(draws, noise.LATENT)}
        _, result, metrics = self._train(draws, values, data, log)
        for player in self.players:
            if player.average.weights:
                self._average(player, step)
        return log.metrics + metrics, tf.stack([*log.values, *tf.unstack(result.metrics)])

    def part(
        self, draws: Draws, log: Log, values: Values, data: Tensors
    ) -> tuple[list[tf.Tensor], dict[str, Tensors], tuple[tf.Tensor, ...]]:
        """As `Update.part`.

        `data` has `latent` of these rows; `labels` where there are some; `real` where the loss pairs.
        """
        own, state, trained = values.players[GENERATOR], self.state, self.trained(values)
        critic = state.function(CRITIC, draws, values, data, self.stream)
        model = critic.plain
        with tf.GradientTape() as tape:
            tape.watch(trained)
            functions = {
                player.role.name: state.function(player.role.name, draws, values, data, self.stream)
                for player in self.players
            }
            generator = functions[GENERATOR]
            fake = generator(data["latent"])
            seen = state.augmentations.apply(fake, values.augmentations, draws, "generator")
            scores = critic(seen)
            batch = batch_of(data, self.size, draws)
            paired = replace(batch, fake=seen, fake_outputs=model.outputs(seen, scores))
            real_scores = None
            if self.experiment.loss.pairs:
                real = state.augmentations.apply(data["real"], values.augmentations, draws, "paired")
                real_scores = critic(real)
                batch = replace(batch, real=real)
                paired = replace(paired, real=real, real_outputs=model.outputs(real, real_scores))
            loss = self._loss.generator(scores, real_scores, paired, values.loss, draws, log)
            generator.plain.keeps_buffers = False
            stack, batch = state.generator.stack, replace(batch, fake=fake)
            penalty = stack.penalties(batch, own, draws, log, critic=critic, **functions)
            objective = Objective(loss, penalty, stack.weight_penalty(generator.plain.weights, own))
            total = objective.total(self.size, self.shares)
        differentiation.check(total, trained, *self._networks)
        objective.report(self.side, log)
        gradients = [dense(g) for g in tape.gradient(total, trained, unconnected_gradients="zero")]
        return gradients, {role: function.plain.checked_buffers() for role, function in functions.items()}, ()

    def _average(self, player: Player, step: tf.Tensor) -> None:
        """Moves the averages of a network towards it."""
        decay = _average_decay(self.experiment, step)
        for average, variables in player.averaged():
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
