"""What the critic's update and the generator's have in common: advance states, compute gradients, apply them."""

from __future__ import annotations

import abc
import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.errors import ContractError
from ganlab.interfaces import Batch
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.training.graph import differentiation
from ganlab.training.graph.calls import Wrapped
from ganlab.training.graph.gradients import Gradients, Result, is_local, may_compile
from ganlab.training.graph.latents import latents_of_update
from ganlab.training.graph.loss_calls import LossCalls
from ganlab.training.graph.networks import SCORE, NetworkFunction
from ganlab.training.graph.objective import Objective, dense
from ganlab.training.graph.ordering import after_reads
from ganlab.training.graph.players import Player
from ganlab.training.graph.replica import Draws, Log, Metric
from ganlab.training.graph.roles import CRITIC, GENERATOR, ROLES
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.values import Ahead, Tensors, Values, side_of
from ganlab.training.graph.variables import assign_changed, assign_groups


class Update(abc.ABC):
    """One side's update of one experiment over one state.

    Attributes:
        side: The side.
        stream: The stream that the layers of the networks under the gradient draw from.
        other_stream: That of the other networks.
        order: The order in which real examples and samples are scored.
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
    other_stream: ClassVar[int]
    order: ClassVar[tuple[str, str]]

    def __init__(
        self,
        experiment: Experiment,
        state: TrainingState,
        *,
        size: int,
        compiled: bool,
        shared: bool = False,
    ) -> None:
        """Takes the experiment and its variables; with `shared`, updates of an iteration share a trace if they can."""
        self.experiment, self.state = experiment, state
        self.size, self.rows = size, size // experiment.replicas
        self.shares = experiment.replicas * experiment.microbatches
        self.players = [player for player in state.players.values() if player.role.side == self.side]
        self._loss = LossCalls(experiment.loss)
        # The critic's gradient goes through no other network, unless a loss of several calls one.
        through = self.side == GENERATOR or len(state.players) > len(ROLES)
        others = [player for player in state.players.values() if through and player not in self.players]
        self._networks = [player.network for player in (*self.players, *others)]
        synchronizes = next((layer for network in self._networks[::-1] if (layer := network.synchronizes)), "")
        self.gradients = Gradients(
            differentiation.explaining(*self._networks)(self.part),
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

        Returns:
            The gradient by `trained(values)`; the buffers of each network trained; in the critic's update the scores
            of real and of fake.
        """

    def trained(self, values: Values) -> list[tf.Tensor]:
        """The tensors that this update trains, those of each network together."""
        return [tensor for player in self.players for tensor in values.players[player.role.name].trained]

    @abc.abstractmethod
    def completed(self, draws: Draws, values: Values, data: Tensors) -> tuple[Tensors, Tensors]:
        """The rows that `part` takes, from the examples, and the generator's buffers after they were made."""

    def ahead(self, update: tf.Tensor, data: Tensors) -> Ahead:
        """Where the networks that this update trains take its gradient; called in a replica's context.

        Nothing is assigned: the update has the same examples and random numbers, and advances the same states.
        """
        draws, values = self._draws(update), self.state.values()
        data, _ = self.completed(draws, values, data)
        values = self.advanced(draws, values, data, Log())
        result, _ = self.gradients(values, data, draws)
        context = tf.distribute.get_replica_context()
        left = iter(context.all_reduce(tf.distribute.ReduceOp.SUM, result.gradients))
        moved = {}
        for player in self.players:
            own, selector = values.players[player.role.name], selector_of(player.role.optimizer_of(self.experiment))
            moved[player.role.name] = player.ahead([next(left) for _ in own.trained], own, selector)
        return moved

    def advanced(self, draws: Draws, values: Values, data: Tensors, log: Log) -> Values:
        """The values of the update, the states of its constraints advanced."""
        batch = batch_of(data, self.size, draws)
        for player in self.players:
            role, stack = player.role.name, player.stack
            # A constraint's own network has the name of its side; one of the generator's side sees the critic too.
            shown = {CRITIC: CRITIC, self.side: role}
            functions: dict[str, Any] = {
                name: self.state.function(of, draws, values, data, self.stream)
                for name, of in shown.items()
                if stack.takes(name)
            }
            functions["networks"] = self.state.networks(draws, values, data, self.stream)
            seen = self._seen(player, batch, functions["networks"], draws)
            states = stack.advance(values.players[role], seen, draws, log, **functions)
            values = values.replaced(role, states=states)
        return values

    def functions(
        self, draws: Draws, values: Values, data: Tensors
    ) -> tuple[dict[str, Wrapped], dict[str, NetworkFunction]]:
        """The networks that this update trains, one function each under its gradient, and all networks, by name."""
        own = {
            player.role.name: self.state.function(player.role.name, draws, values, data, self.stream)
            for player in self.players
        }
        return own, {**self.state.networks(draws, values, data, self.other_stream), **own}

    def _seen(self, player: Player, batch: Batch, networks: Mapping[str, NetworkFunction], draws: Draws) -> Batch:
        """The batch as a network's constraints get it: with what the network tells apart."""
        name = player.role.name
        if name in ROLES or self.side != CRITIC or not player.stack.constraints:
            return batch
        judged = self._loss.judged(name, batch, networks, draws)
        return replace(batch, real=judged[0], fake=judged[1]) if judged else batch

    def scored(
        self, critic: Wrapped, networks: Mapping[str, NetworkFunction], batch: Batch, draws: Draws, log: Log
    ) -> tuple[dict[str, tf.Tensor], Batch]:
        """The scores of a batch's real examples and samples, as far as it has them, and the batch with all outputs."""
        outputs: dict[str, Tensors] = {}
        if CRITIC not in self.state.players:
            return {}, batch
        if (scores := self._loss.scores(self.side, batch, networks, draws, log)) is not None:
            outputs = {name: {SCORE: x} for name, x in scores.items()}
        else:
            scores = {}
            for name in self.order:
                if (x := getattr(batch, name)) is not None:
                    scores[name] = critic(x)
                    outputs[name] = critic.plain.outputs(x, scores[name])
        return scores, replace(batch, real_outputs=outputs.get("real", {}), fake_outputs=outputs["fake"])

    def objective(
        self,
        loss: tf.Tensor,
        batch: Batch,
        values: Values,
        draws: Draws,
        log: Log,
        own: Mapping[str, Wrapped],
        shown: Mapping[str, NetworkFunction],
        networks: Mapping[str, NetworkFunction],
        *others: NetworkFunction,
        **optional_ones: Any,
    ) -> Objective:
        """A loss, of each example, with the penalties of every network that this update trains.

        `own` are these networks by name, `shown` the same as their constraints get them, and `networks` all networks.
        `others` are what penalties take beside their own network's function, `optional_ones` what they may take.
        """
        for function in own.values():
            function.plain.keeps_buffers = False  # the buffers from a penalty's calls are dropped
        penalties, of_weights = [], []
        for player in self.players:
            role, stack = player.role.name, player.stack
            seen, given = self._seen(player, batch, networks, draws), {**optional_ones, "networks": networks}
            penalty = stack.penalties(seen, values.players[role], draws, log, shown[role], *others, **given)
            penalties.append(penalty)
            of_weights.append(stack.weight_penalty(own[role].plain.weights, values.players[role]))
        return Objective(loss, _sum(penalties), _sum(of_weights))

    def tensors(self, gradients: Sequence[Any], trained: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The gradient as tensors; refuses a further network that none of it reaches, which nothing trains."""
        left = list(gradients)
        for player in self.players:
            own, left = left[: len(player.trained)], left[len(player.trained) :]
            if own and player.role.name not in ROLES and all(gradient is None for gradient in own):
                raise ContractError(
                    f"Nothing trains the network {player.role.name!r} of {selector_of(self.experiment.architecture)}: "
                    f"the {self.side}'s loss and penalties do not depend on it. Use a loss or a constraint that calls "
                    f"networks[{player.role.name!r}], or give the network to the other side."
                )
        return [dense(gradient, of) for gradient, of in zip(gradients, trained, strict=True)]

    def _draws(self, update: tf.Tensor) -> Draws:
        """The random numbers of an update; called in a replica's context."""
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        return Draws(self.experiment.seed, self.rows, update, tf.convert_to_tensor(replica, tf.int32))

    def latents(self, draws: Draws, stream: int) -> tf.Tensor:
        """The latent vectors of the update's rows."""
        return latents_of_update(self.experiment.architecture, draws, stream)

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


def _sum(terms: Sequence[tf.Tensor | None]) -> tf.Tensor | None:
    """The sum of those terms that there are; None if there are none."""
    given = [term for term in terms if term is not None]
    return functools.reduce(operator.add, given) if given else None


def batch_of(data: Tensors, size: int, draws: Draws) -> Batch:
    """The batch of an update, as constraints and losses get it; `size` is that of the global batch."""
    return Batch(
        real=data.get("real"),
        fake=data.get("fake"),
        labels=data.get("labels"),
        size=size,
        step=draws.step,
        latent=data["latent"],
        conditions=data.get("conditions"),
        source=data.get("source"),
        side=side_of(data),
    )
