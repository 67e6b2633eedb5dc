"""The state of training: all variables that it changes, in the strategy's scope, under stable names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

from ganlab.composition import Experiment, schedules
from ganlab.errors import IncompatibleError
from ganlab.plugins import scheduled
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.training.graph.augmenting import Augmentations
from ganlab.training.graph.calls import Deferred, Wrapped
from ganlab.training.graph.networks import NetworkFunction, build_networks
from ganlab.training.graph.players import Player, under
from ganlab.training.graph.plugin_state import tensors
from ganlab.training.graph.replica import Draws
from ganlab.training.graph.roles import CRITIC, GENERATOR, role_of
from ganlab.training.graph.stack import same_weights
from ganlab.training.graph.values import Ahead, Tensors, Values
from ganlab.training.graph.variables import raw, read, untrained, values_of


class TrainingState:
    """The variables of a run.

    Attributes:
        players: The networks with all that belongs to each, by role, in the order in which they were built.
        augmentations: The augmentations.
        nest: Every variable that an update computes with.
        schedules: The schedules of parameters, by the tag that their values are logged under.
    """

    def __init__(self, experiment: Experiment) -> None:
        """Makes the variables of an experiment."""
        self.schedules = schedules(experiment)
        self._steps, self._step = experiment.steps, 0
        # For functions outside the step, which are traced once and called after any number of updates.
        self._clock = tf.Variable(0, dtype=tf.int64, trainable=False) if self.schedules else None
        with self.timed():
            self._make(experiment)

    @property
    def step(self) -> int:
        """Generator updates done."""
        return self._step

    @step.setter
    def step(self, value: int) -> None:
        self._step = value
        if self._clock is not None:
            self._clock.assign(value)

    def timed(self) -> contextlib.AbstractContextManager[None]:
        """Context manager: scheduled parameters have the values of this state's step."""
        return contextlib.nullcontext() if self._clock is None else scheduled.at(self._clock, self._steps)

    def _make(self, experiment: Experiment) -> None:
        networks = build_networks(experiment)
        roles = {name: role_of(name, network.side, experiment) for name, network in networks.items()}
        self.players = {
            name: Player(role, networks[name], role.constraints_of(experiment)) for name, role in roles.items()
        }
        self.augmentations = Augmentations(experiment.augmentations, experiment.component_names("augmentations"))
        for network in networks.values() if self._clock is not None else ():
            network.clock = self._clock, self._steps
        with experiment.strategy.scope():
            for player in self.in_turn:
                player.constrain()
            with plugin_code(selector_of(experiment.loss), "initial_state"):
                loss = tensors("The loss", "initial_state", experiment.loss.initial_state())
            # In the order of updates, by which the names of a graph's tensors are numbered.
            self.nest = Values(
                {player.role.name: player.nest for player in self.in_turn},
                *tf.nest.map_structure(untrained, (loss, self.augmentations.initialize())),
            )
            for player in self.in_turn:
                player.equip(experiment, self.schedules.get(f"schedules/{player.role.optimizer}/learning_rate"))

    @property
    def critic(self) -> Player:
        """The player in the role of the critic.

        Raises:
            IncompatibleError: There is none.
        """
        if CRITIC not in self.players:
            raise IncompatibleError("This needs a critic, and the experiment's loss trains none: it compares batches.")
        return self.players[CRITIC]

    @property
    def generator(self) -> Player:
        """The player in the role of the generator."""
        return self.players[GENERATOR]

    @property
    def in_turn(self) -> list[Player]:
        """The players in the order of their updates: those of the critic's side come first."""
        return sorted(self.players.values(), key=lambda player: player.role.side != CRITIC)

    def function(self, role: str, draws: Draws | None, values: Values, data: Tensors, stream: int) -> Wrapped:
        """A network in an update as its constraints make it; without `draws`, its layers are as in inference.

        Of `data`, the update's rows, it takes labels, conditions, sources or side outputs.
        """
        player = self.critic if role == CRITIC else self.players[role]
        own = values.players[role]
        others: dict[str, NetworkFunction] = {}
        if player.role.side != CRITIC:
            others[CRITIC] = self.deferred(CRITIC, draws, values, data, stream)
        effective = player.stack.effective(own)
        calls = player.function(effective, own.buffers, data, draws, stream, **others)
        return Wrapped(*calls, self.deferred(role, draws, values, data, stream).at, own.weights)

    def deferred(self, role: str, draws: Draws | None, values: Values, data: Tensors, stream: int) -> Deferred:
        """The same network, made anew in each call."""
        own = values.players[role].weights if role in self.players else {}

        def at(weights: Tensors) -> Wrapped:
            others = same_weights(f"A caller of the {role}", "at", own, weights)
            changed = values.replaced(role, weights=others) if role in self.players else values
            return self.function(role, draws, changed, data, stream)

        return Deferred(at, own)

    def networks(self, draws: Draws | None, values: Values, data: Tensors, stream: int) -> dict[str, NetworkFunction]:
        """All of them, made anew in each call, by name."""
        return {role: self.deferred(role, draws, values, data, stream) for role in self.players}

    def variables(self) -> dict[str, tf.Variable]:
        """Every variable of the run under a stable name."""
        built, in_turn = self.players.values(), self.in_turn
        groups = [group for player in built for group in player.named(player.nest)[:2]]
        groups += [group for player in in_turn for kind in player.named(player.nest)[2:] for group in kind]
        groups += [under("loss/state", self.nest.loss)]
        pairs = zip(self.augmentations.names, self.nest.augmentations, strict=True)
        groups += [under(f"augmentations/{name}/state", state) for name, state in pairs]
        for player in built:
            weights, buffers, parameters, _ = player.named(player.average, averages=True)
            groups += [weights, *parameters, buffers]
        groups += [player.named_optimizer() for player in in_turn]
        return {name: raw(variable) for group in groups for name, variable in group.items()}

    @contextlib.contextmanager
    def own_rates(self) -> Iterator[None]:
        """Context manager: learning rates that are variables keep their values, whatever is restored inside."""
        rates = [player.optimizer._learning_rate for player in self.in_turn]
        variables = [rate for rate in rates if isinstance(rate, keras.Variable)]
        values = [keras.ops.convert_to_numpy(variable) for variable in variables]
        yield
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)

    def values(self, ahead: Ahead | None = None) -> Values:
        """The values of all variables that an update computes with, on this replica, or those ahead of some."""
        values: Values = values_of(self.nest)
        for role, fields in (ahead or {}).items():
            values = values.replaced(role, **fields)
        return values

    def collected(self, named: Mapping[str, Any]) -> Values:
        """The nest of `values()`, filled from a mapping by the names of `variables()`."""
        names = {id(variable): name for name, variable in self.variables().items()}
        values: Values = tf.nest.map_structure(lambda variable: named[names[id(raw(variable))]], self.nest)
        return values

    def take_weights(self, values: Mapping[str, Any]) -> None:
        """Begins from other weights: projects them, and begins constraints and averages anew.

        Args:
            values: New values of some of the networks' variables, by the names of `variables()`.
        """
        variables = self.variables()
        for name, value in values.items():
            variables[name].assign(value)
        with self.timed():
            for player in self.in_turn:
                player.begin_anew()

    def sampling_weights(self, role: str = GENERATOR) -> Tensors:
        """The weights that samples are drawn with: reparameterized, and averaged where there is an average."""
        with self.timed():
            return self.players[role].stack.effective(values_of(self.players[role].sampled))

    def sampling_buffers(self, role: str = GENERATOR) -> Tensors:
        """The moving statistics that samples are drawn with: averaged where there is such an average."""
        return read(self.players[role].sampled.buffers)
