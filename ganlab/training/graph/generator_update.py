"""One update of the generator on one replica."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.training.graph import differentiation, noise
from ganlab.training.graph.players import Player
from ganlab.training.graph.replica import Draws, Log, Metric
from ganlab.training.graph.roles import CRITIC, GENERATOR
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.update import Update, batch_of
from ganlab.training.graph.values import Ahead, Tensors, Values
from ganlab.training.graph.variables import assign, read


class GeneratorUpdate(Update):
    """The update of the generator and of what is trained with it."""

    side, order = GENERATOR, ("fake", "real")
    stream, other_stream = noise.LAYERS, noise.LAYERS

    def __init__(self, experiment: Experiment, state: TrainingState, *, compiled: bool, shared: bool) -> None:
        shared = shared and experiment.generator_steps != 1
        super().__init__(experiment, state, size=experiment.generator_batch, compiled=compiled, shared=shared)
        if experiment.turn.waits:
            for player in self.players:
                player.stack.check_not_lazy()

    def __call__(self, step: tf.Tensor, data: Tensors, ahead: Ahead | None = None) -> tuple[list[Metric], tf.Tensor]:
        """Trains the generator once; called in a replica's context with its rows and the number of its updates done.

        Returns its metrics, and their local values, `(metrics,)` float32.
        """
        log, values, draws = Log(), self.state.values(ahead), self._draws(step)
        data, _ = self.completed(draws, values, data)
        _, result, metrics = self._train(draws, values, data, log)
        for player in self.players:
            if player.average.weights:
                self._average(player, step)
        return log.metrics + metrics, tf.stack([*log.values, *tf.unstack(result.metrics)])

    def ready(self) -> tf.Tensor:
        """Whether the loss lets it move in this step, a bool scalar."""
        return self._loss.ready(self.state.values().loss)

    def completed(self, draws: Draws, values: Values, data: Tensors) -> tuple[Tensors, Tensors]:
        """As `Update.completed`: with latent vectors."""
        return {**data, "latent": self.latents(draws, noise.LATENT)}, {}

    def part(
        self, draws: Draws, log: Log, values: Values, data: Tensors
    ) -> tuple[list[tf.Tensor], dict[str, Tensors], tuple[tf.Tensor, ...]]:
        """As `Update.part`.

        `data` has `latent` of these rows, and what else belongs to each; `real` where the loss pairs.
        """
        state, trained = self.state, self.trained(values)
        critic_of: Any = state.function if CRITIC in state.players else state.deferred
        critic = critic_of(CRITIC, draws, values, data, self.stream)
        with tf.GradientTape() as tape:
            tape.watch(trained)
            own, networks = self.functions(draws, values, data)
            networks[CRITIC] = critic
            fake = own[GENERATOR](data["latent"])
            paired = {"paired": data["real"]} if self.experiment.loss.pairs else {}
            seen, side = state.augmentations.apply({"generator": fake, **paired}, values.augmentations, draws)
            if side:  # the critic of these rows
                data = {**data, **side}
                networks[CRITIC] = critic = state.function(CRITIC, draws, values, data, self.stream)
            batch = replace(batch_of(data, self.size, draws), fake=seen["generator"], real=seen.get("paired"))
            scores, scored = self.scored(critic, networks, batch, draws, log)
            loss = self._loss.value(self.side, scores, scored, values.loss, networks, draws, log)
            batch = replace(batch, fake=fake)
            objective = self.objective(loss, batch, values, draws, log, own, own, networks, critic)
            total = objective.total(self.size, self.shares)
        differentiation.check(total, trained, *self._networks)
        objective.report(self.side, log)
        gradients = self.tensors(tape.gradient(total, trained), trained)
        return gradients, {role: function.plain.checked_buffers() for role, function in own.items()}, ()

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
        return tf.where(step < experiment.ema_start * experiment.generator_steps, 0.0, decay)
    # Early on the average follows quickly; otherwise it would remember the initial weights for 1 / (1 - decay) steps.
    done = tf.cast(step, tf.float32)
    return tf.minimum(decay, (1.0 + done) / (10.0 + done))
