"""All tensors that an update computes with, as one nest, so that its parts are functions of their arguments alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

Tensors = dict[str, tf.Tensor]
# The prefix of augmentations' side outputs in an update's rows.
SIDE = "side/"


class PlayerValues(NamedTuple):
    """The values of one network and of its constraints.

    Attributes:
        weights: Its trained weights by name.
        buffers: Its other variables.
        parameters: The trained parameters of its constraints, a mapping each.
        states: Their states, likewise.
    """

    weights: Tensors
    buffers: Tensors
    parameters: list[Tensors]
    states: list[Tensors]

    @property
    def trained(self) -> list[tf.Tensor]:
        """The tensors that its optimizer trains: its weights, then the constraints' parameters."""
        return [*self.weights.values(), *(value for group in self.parameters for value in group.values())]


# The weights and the parameters at which a step's gradient is taken, fields of `PlayerValues` by role; empty for those
# that it moves.
Ahead = Mapping[str, Mapping[str, Any]]


class Values(NamedTuple):
    """The values of a run's variables in one update.

    Attributes:
        players: Those of each network by its role.
        loss: The loss's state.
        augmentations: The augmentations' states.
    """

    players: dict[str, PlayerValues]
    loss: Tensors
    augmentations: list[Tensors]

    def replaced(self, role: str, **fields: Any) -> Values:
        """The same values, with other ones in some fields of a player."""
        return self._replace(players={**self.players, role: self.players[role]._replace(**fields)})


def side_of(data: Mapping[str, tf.Tensor]) -> Tensors:
    """The side outputs of augmentations among an update's rows, by name."""
    return {name.removeprefix(SIDE): x for name, x in data.items() if name.startswith(SIDE)}


def may_be_infinite(name: str) -> bool:
    """Whether a variable of this name may hold infinity: the state of a constraint, for example before a minimum."""
    return name.startswith(("constraints/", "network_constraints/")) and "/state/" in name
