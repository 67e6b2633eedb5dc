"""One update of the critic on one replica."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.training.graph import differentiation, noise
from ganlab.training.graph.gradients import rows_of
from ganlab.training.graph.networks import NetworkFunction
from ganlab.training.graph.parts import in_turn
from ganlab.training.graph.replica import Draws, Log, Metric
from ganlab.training.graph.roles import CRITIC, GENERATOR
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.update import Update, batch_of
from ganlab.training.graph.values import Ahead, Tensors, Values
from ganlab.training.graph.variables import assign, assign_changed, assign_groups


class CriticUpdate(Update):
    """The update of the critic and of what is trained with it."""

    side, order = CRITIC, ("real", "fake")
    stream, other_stream = noise.CRITIC_LAYERS, noise.FAKE_LAYERS

    def __init__(self, experiment: Experiment, state: TrainingState, *, compiled: bool, shared: bool) -> None:
        shared = shared and experiment.critic_steps != 1
        super().__init__(experiment, state, size=experiment.batch_size, compiled=compiled, shared=shared)

    def __call__(self, update: tf.Tensor, data: Tensors, ahead: Ahead | None = None) -> tuple[list[Metric], tf.Tensor]:
        """Trains the critic once; called in a replica's context with its rows and the number of critic updates done.

        Returns its metrics, and their local values, `(metrics,)` float32.
        """
        state, log = self.state, Log()
        draws, values = self._draws(update), state.values(ahead)
        data, buffers = self.completed(draws, values, data)
        assign_changed(state.generator.buffers, buffers, values.players[GENERATOR].buffers)
        values, result, metrics = self._train(draws, values, data, log)
        self._follow(draws, values, data, result.scores, log)
        return log.metrics + metrics, tf.stack([*log.values, *tf.unstack(result.metrics)])

    def completed(self, draws: Draws, values: Values, data: Tensors) -> tuple[Tensors, Tensors]:
        """As `Update.completed`: with latent vectors and samples, augmented."""
        data, buffers = self.generated(draws, values, data)
        pair = {"real": data["real"], "fake": data["fake"]}
        changed, side = self.state.augmentations.apply(pair, values.augmentations, draws)
        return {**data, **changed, **side}, buffers

    def generated(self, draws: Draws, values: Values, data: Tensors) -> tuple[Tensors, Tensors]:
        """The data with latent vectors and samples, and the generator's buffers afterwards."""
        data = {**data, "latent": self.latents(draws, noise.FAKE_LATENT)}
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
        return {**data, "fake": fake}, values.players[GENERATOR].buffers

    def _samples(self, draws: Draws, values: Values, data: Tensors) -> tuple[tf.Tensor, Tensors]:
        generator = self.state.function(GENERATOR, draws, values, data, noise.FAKE_LAYERS)
        # A constraint that moves latent vectors uses the critic: nothing of that is part of the critic's gradient.
        fake = tf.stop_gradient(generator(data["latent"]))
        return fake, generator.plain.checked_buffers()

    def _follow(self, draws: Draws, values: Values, data: Tensors, scores: Any, log: Log) -> None:
        """Advances the states that follow the critic's scores: the loss's and the augmentations'."""
        nest = self.state.nest
        if nest.loss:
            batch = batch_of(data, self.size, draws)
            networks = self.state.networks(draws, values, data, self.stream)
            advanced = self._loss.advance(values.loss, scores, batch, networks, draws, log)
            assign(nest.loss.values(), [advanced[key] for key in nest.loss])
        if any(nest.augmentations):
            states = self.state.augmentations.advance(values.augmentations, scores[0], draws, log)
            assign_groups(nest.augmentations, states)

    def part(
        self, draws: Draws, log: Log, values: Values, data: Tensors
    ) -> tuple[list[tf.Tensor], dict[str, Tensors], tuple[tf.Tensor, ...]]:
        """As `Update.part`, in one tape: scores, loss, penalties.

        `data` has `real`, `fake` and `latent` of these rows, and what else belongs to each.
        """
        trained, batch = self.trained(values), batch_of(data, self.size, draws)
        with tf.GradientTape() as tape:
            tape.watch(trained)
            own, networks = self.functions(draws, values, data)
            scores, seen = self.scored(own[CRITIC], networks, batch, draws, log)
            loss = self._loss.value(self.side, scores, seen, values.loss, networks, draws, log)
            shown: dict[str, NetworkFunction] = {**own}
            witness = self._loss.witness(seen, draws)
            if witness is not None:
                scores = {"real": witness(seen.real_outputs), "fake": witness(seen.fake_outputs)}
                shown[CRITIC] = own[CRITIC].witnessed(witness)
            generator = networks[GENERATOR]
            objective = self.objective(loss, batch, values, draws, log, own, shown, networks, generator=generator)
            total = objective.total(self.size, self.shares)
        differentiation.check(total, trained, *self._networks)
        # From the graph if there is one, because that skips terms that are zero.
        given = tape.gradient(total, trained) if tf.executing_eagerly() else tf.gradients(total, trained)
        gradients = self.tensors(given, trained)
        objective.report(self.side, log)
        log.add("critic/wasserstein", tf.reduce_mean(scores["real"]) - tf.reduce_mean(scores["fake"]))
        buffers = {role: function.plain.checked_buffers() for role, function in own.items()}
        return gradients, buffers, (scores["real"], scores["fake"])
