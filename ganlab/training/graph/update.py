"""What the critic's update and the generator's have in common: advance states, compute gradients, apply them."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import ClassVar

import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.interfaces import Batch
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.training.graph import differentiation
from ganlab.training.graph.gradients import Gradients, Result, is_local, may_compile
from ganlab.training.graph.loss_calls import LossCalls
from ganlab.training.graph.ordering import after_reads
from ganlab.training.graph.players import Player
from ganlab.training.graph.replica import Draws, Log, Metric
from ganlab.training.graph.roles import CRITIC
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.values import Tensors, Values
from ganlab.training.graph.variables import assign_changed, assign_groups


class Update(abc.ABC):
    """One side's update of one experiment over one state.

    Attributes:
        side: The side.
        stream: The stream that the layers of the networks under the gradient draw from.
        experiment: The experiment.
        state: The state.
        players: The networks that this update trains.
        size: The rows of the global batch.
        rows: Those of a replica.
        shares: The number of parts of the global batch: replicas times microbatches.
        gradients: The part that computes the gradient.
    """

    side: ClassVar[str]
    stream: ClassVar[int]

    def __init__(
        self,
        experiment: Experiment,
        state: TrainingState,
        *,
        size: int,
        through: Sequence[Player] = (),
        compiled: bool,
        shared: bool = False,
    ) -> None:
        """Takes the experiment and its variables.

        Args:
            experiment: The experiment.
            state: Its variables.
            size: The rows of the global batch.
            through: Further networks that the gradient goes through.
            compiled: Whether XLA compiles the gradient.
            shared: Whether several updates of an iteration share a trace, where they can.
        """
        self.experiment, self.state = experiment, state
        self.size, self.rows = size, size // experiment.replicas
        self.shares = experiment.replicas * experiment.microbatches
        self.players = [player for player in state.players.values() if player.role.side == self.side]
        self._loss = LossCalls(experiment.loss)
        self._networks = [player.network for player in (*self.players, *through)]
        synchronizes = next((layer for network in self._networks[::-1] if (layer := network.synchronizes)), "")
        self.gradients = Gradients(
            differentiation.explaining(self.part, *self._networks),
            experiment,
            self.trained,
            compiled=compiled and may_compile(experiment, synchronizes),
            shared=shared and is_local(experiment, synchronizes),
        )

    @abc.abstractmethod
    def part(
        self, draws: Draws, log: Log, values: Values, data: Tensors
    ) -> tuple[list[tf.Tensor], dict[str, Tensors], tuple[tf.Tensor, ...]]:
        """The part that `Gradients` runs.

        Args:
            draws: The source of random numbers.
            log: Takes the metrics.
            values: The values of all variables, the constraints' states advanced.
            data: The rows.

        Returns:
            The gradient by `trained(values)`; the buffers of each network trained; in the critic's update the scores
            of real and of fake.
        """

    def trained(self, values: Values) -> list[tf.Tensor]:
        """The tensors that this update trains, those of each network together."""
        return [tensor for player in self.players for tensor in values.players[player.role.name].trained]

    def advanced(self, draws: Draws, values: Values, data: Tensors, log: Log) -> Values:
        """The values of the update, the states of its constraints advanced."""
        batch = batch_of(data, self.size, draws)
        for player in self.players:
            role, stack = player.role.name, player.stack
            # A constraint of the critic sees the critic alone; one of the generator's side all networks.
            shown = [CRITIC] if self.side == CRITIC else [other.role.name for other in self.state.in_turn]
            taken = [name for name in shown if stack.takes(name)]
            functions = {name: self.state.function(name, draws, values, data, self.stream) for name in taken}
            states = stack.advance(values.players[role], batch, draws, log, **functions)
            values = values.replaced(role, states=states)
        return values

    def _draws(self, update: tf.Tensor) -> Draws:
        """The random numbers of an update; called in a replica's context."""
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        return Draws(self.experiment.seed, self.rows, update, tf.convert_to_tensor(replica, tf.int32))

    def _latents(self, draws: Draws, stream: int) -> tf.Tensor:
        """The latent vectors of the update's rows."""
        return draws.take("normal", (self.rows, int(self.experiment.architecture.latent_dim)), stream)

    def _train(self, draws: Draws, values: Values, data: Tensors, log: Log) -> tuple[Values, Result, list[Metric]]:
        """Advances the constraints' states and applies the gradient; called in a replica's context.

        Returns:
            The values of the update, and what its gradient's computation returned.
        """
        values = self.advanced(draws, values, data, log)
        for player in self.players:
            assign_groups(player.states, values.players[player.role.name].states)
        result, metrics = self.gradients(values, data, draws)
        gradients = after_reads(result.gradients, values)
        for player in self.players:
            role, trained = player.role.name, player.trained
            own, gradients = gradients[: len(trained)], gradients[len(trained) :]
            with plugin_code(selector_of(player.role.optimizer_of(self.experiment)), "apply"):
                player.optimizer.apply(own, trained)
            assign_changed(player.buffers, result.buffers.get(role, {}), values.players[role].buffers)
            player.project()
        return values, result, metrics


def batch_of(data: Tensors, size: int, draws: Draws) -> Batch:
    """The batch of an update, as constraints and losses get it; `size` is that of the global batch."""
    return Batch(
        real=data.get("real"),
        fake=data.get("fake"),
        labels=data.get("labels"),
        size=size,
        step=draws.step,
        latent=data["latent"],
    )
