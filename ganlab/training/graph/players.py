"""A network in training with all that belongs to it: constraints, their variables, optimizer and averages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.errors import ContractError, IncompatibleError
from ganlab.interfaces import Constraint, Schedule
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.plugins.recipes import unique_names
from ganlab.training.graph.calls import Calls
from ganlab.training.graph.networks import Network, NetworkFunction, static_shape
from ganlab.training.graph.optimizers import own_optimizer
from ganlab.training.graph.replica import Draws
from ganlab.training.graph.roles import CRITIC, Role, written
from ganlab.training.graph.stack import ConstraintStack
from ganlab.training.graph.values import PlayerValues, Tensors
from ganlab.training.graph.variables import assign_changed, read, untrained, value_of, values_of


class Player:
    """A network that a run trains.

    Attributes:
        role: Its role.
        network: The network.
        stack: Its constraints.
        weights: Its trained weights by name.
        buffers: Its other variables.
        parameters: The trained parameters of its constraints, a mapping each.
        states: Their states, likewise.
        average: The averages that are kept, in the fields of what they follow; empty mappings without averaging.
        optimizer: Its optimizer, built over its weights and its constraints' parameters.
    """

    average: PlayerValues
    optimizer: keras.optimizers.Optimizer

    def __init__(self, role: Role, network: Network, constraints: Sequence[Constraint]) -> None:
        """Takes the network and shows it to its constraints; `constrain` and `equip` make the variables."""
        self.role, self.network = role, network
        self.stack = ConstraintStack(constraints, unique_names(constraints), role.constraints, role.side)
        self.stack.prepare(network.model)
        self.weights: dict[str, Any] = network.weights
        self.buffers: dict[str, Any] = network.buffers
        self.parameters: list[dict[str, Any]] = []
        self.states: list[dict[str, Any]] = []

    def constrain(self) -> None:
        """Projects the weights, and makes the variables of the constraints, in the strategy's scope."""
        parameters, states = self._initial()
        prefix = "" if self.role.name == CRITIC else f"{self.role.name}_"
        self.parameters = [
            {k: keras.Variable(value, name=f"{prefix}parameter_{i}_{j}") for j, (k, value) in enumerate(group.items())}
            for i, group in enumerate(parameters)
        ]
        self.states = [{key: untrained(value) for key, value in group.items()} for group in states]

    def equip(self, experiment: Experiment, schedule: Schedule | None) -> None:
        """Makes the averages and the optimizer, in the strategy's scope."""

        def copies(group: Mapping[str, Any], kept: bool) -> dict[str, Any]:
            return {name: untrained(value) for name, value in read(group).items()} if kept else {}

        averaged = self.role.averaged and bool(experiment.averaging)
        self.average = PlayerValues(
            copies(self.weights, averaged),
            copies(self.buffers, self.role.averaged and experiment.ema_buffers),
            [copies(group, averaged) for group in self.parameters],
            [{} for _ in self.states],
        )
        self.optimizer = own_optimizer(self.role, experiment, schedule)
        self.optimizer.build(self.trained)

    def begin_anew(self) -> None:
        """Projects the weights, and begins constraints and averages anew in the variables that there are."""
        for groups, values in zip((self.parameters, self.states), self._initial(), strict=True):
            for group, value in zip(groups, values, strict=True):
                for key, variable in group.items():
                    variable.assign(value[key])
        for average, followed in self.averaged():
            for name, variable in average.items():
                variable.assign(value_of(followed[name]))

    def _initial(self) -> tuple[list[Tensors], list[Tensors]]:
        """Projects the weights, and computes the first parameters and states of the constraints."""
        weights = read(self.weights)
        projected = self.stack.project(weights)
        for name, variable in self.weights.items():
            if projected[name] is not weights[name]:
                variable.assign(projected[name])
        return self.stack.initialize(projected)

    @property
    def nest(self) -> PlayerValues:
        """Every variable of it that an update computes with."""
        return PlayerValues(self.weights, self.buffers, self.parameters, self.states)

    @property
    def trained(self) -> list[keras.Variable]:
        """The variables that its optimizer trains: its weights, then the constraints' parameters."""
        return self.nest.trained

    def averaged(self) -> list[tuple[dict[str, Any], Mapping[str, Any]]]:
        """The averages that are kept, each mapping beside that of the variables that it follows."""
        parameters = zip(self.average.parameters, self.parameters, strict=True)
        return [(self.average.weights, self.weights), *parameters, (self.average.buffers, self.buffers)]

    @property
    def sampled(self) -> PlayerValues:
        """The variables that are computed with outside of training: averages where there are some."""
        weights, buffers, parameters, _ = self.average
        averaged = self.nest._replace(buffers=buffers or self.buffers)
        return averaged._replace(weights=weights, parameters=parameters) if weights else averaged

    def bounds(self) -> dict[str, float]:
        """Certified Lipschitz bounds by constraint, of those that give one; none of a network with several inputs."""
        if self.network.input_shape is None and len(self.network.model.inputs or ()) != 1:
            return {}
        return self.stack.bounds(self.stack.effective(values_of(self.sampled)))

    def function(
        self,
        effective: Tensors,
        buffers: Tensors,
        data: Tensors,
        draws: Draws | None = None,
        stream: int = 0,
        **others: NetworkFunction,
    ) -> tuple[Calls, NetworkFunction]:
        """The network as a function of its input: its calls before any constraint, and as its constraints wrap them.

        `effective` are its weights, reparameterized; `data` has the labels, conditions, sources and side outputs of a
        batch's rows, as far as it takes them. Without `draws` its layers are as in inference. `others` are networks by
        role, for constraints that take them.
        """
        plain = Calls(self.network, effective, buffers, data, draws, stream)
        return plain, self.stack.transform(plain, draws, scores=self.network.scores, **others)

    def ahead(self, gradients: Sequence[tf.Tensor], values: PlayerValues, optimizer: str) -> dict[str, Any]:
        """The weights, projected, and the parameters at which its optimizer takes the gradient that it applies.

        Args:
            gradients: The gradient at `values` over the global batch.
            values: Its values.
            optimizer: The optimizer as messages name it.
        """
        shapes = [static_shape(x) for x in values.trained]
        with plugin_code(optimizer, "look_ahead"):
            moved = [tf.convert_to_tensor(x) for x in self.optimizer.look_ahead(list(gradients), values.trained)]
        if (given := [static_shape(x) for x in moved]) != shapes:
            raise ContractError(
                f"{optimizer} returned the shapes {given} from look_ahead; it must keep those of the weights, {shapes}."
            )
        left = iter(moved)
        weights = {name: next(left) for name in values.weights}
        parameters = [{key: next(left) for key in group} for group in values.parameters]
        return {"weights": self.stack.project(weights), "parameters": parameters}

    def project(self) -> None:
        """Moves the weights to where the constraints allow them; called in a replica's context."""
        if self.stack.overrides_projection:
            weights = read(self.weights)
            assign_changed(self.weights, self.stack.project(weights), weights)

    def named(self, values: PlayerValues, *, averages: bool = False) -> PlayerValues:
        """Variables of it, for example `nest`, or `averages`, under their names in checkpoints and messages."""
        network, kind = self.role.name, self.stack.kind
        weights, buffers, parameters = _AVERAGES if averages else _VARIABLES

        def named(folder: str, groups: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
            pairs = zip(self.stack.names, groups, strict=True)
            return [under(f"{kind}/{constraint}/{folder}", group) for constraint, group in pairs]

        return PlayerValues(
            under(f"{network}/{weights}", values.weights),
            under(f"{network}/{buffers}", values.buffers),
            named(parameters, values.parameters),
            named("state", values.states),
        )

    def named_optimizer(self) -> dict[str, Any]:
        """The optimizer's variables under such names."""
        # By position, not by path: an optimizer's paths contain names that Keras generates.
        return under(f"{self.role.name}/optimizer", {f"{i:04d}": v for i, v in enumerate(self.optimizer.variables)})


# The folders of weights, buffers and constraints' parameters in names.
_VARIABLES = "weights", "buffers", "parameters"
_AVERAGES = "average", "average_buffers", "average"


def look_ahead(players: Sequence[Player]) -> bool:
    """Whether the optimizers of all players look ahead; all or none may: the step ahead is one of the whole game."""
    ahead = {hasattr(player.optimizer, "look_ahead"): written(player.role.optimizer) for player in players}
    if len(ahead) == 2:
        raise IncompatibleError(
            f"{ahead[True]} looks ahead and {ahead[False]} does not: all networks step ahead together, or none. Use "
            "optimizers that look ahead for all of them, or for none."
        )
    return True in ahead


def under(folder: str, group: Mapping[str, Any]) -> dict[str, Any]:
    """Variables under names with a folder before their own."""
    return {f"{folder}/{name}": value for name, value in group.items()}
