"""All tensors that an update computes with, as one nest, so that its parts are functions of their arguments alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

Tensors = dict[str, tf.Tensor]


class Values(NamedTuple):
    """The values of a run's variables in one update.

    Attributes:
        critic: The critic's trained weights by name.
        critic_buffers: Its other variables.
        parameters: The trained parameters of its constraints, a mapping each.
        states: Their states, likewise.
        generator: The generator's trained weights by name.
        generator_buffers: Its other variables.
        generator_parameters: The trained parameters of its constraints.
        generator_states: Their states.
        loss: The loss's state.
        augmentations: The augmentations' states.
    """

    critic: Tensors
    critic_buffers: Tensors
    parameters: list[Tensors]
    states: list[Tensors]
    generator: Tensors
    generator_buffers: Tensors
    generator_parameters: list[Tensors]
    generator_states: list[Tensors]
    loss: Tensors
    augmentations: list[Tensors]

    @property
    def critic_trained(self) -> list[tf.Tensor]:
        """The tensors that the critic's optimizer trains: its weights, then the constraints' parameters."""
        return [*self.critic.values(), *(value for group in self.parameters for value in group.values())]

    @property
    def generator_trained(self) -> list[tf.Tensor]:
        """The tensors that the generator's optimizer trains, likewise."""
        return [*self.generator.values(), *(value for group in self.generator_parameters for value in group.values())]

    def named(self, names: Mapping[str, list[str]]) -> dict[str, Any]:
        """Every value under the name that it has in checkpoints and messages.

        Args:
            names: The names of the constraints, generator constraints and augmentations, by these words.
        """
        found: dict[str, Any] = {}
        for field, prefixes in _prefixes(names).items():
            value = getattr(self, field)
            groups = [(prefixes, value)] if isinstance(prefixes, str) else zip(prefixes, value, strict=True)
            for prefix, group in groups:
                found |= {f"{prefix}{key}": each for key, each in group.items()}
        return found


def collected(find: Callable[[str], Mapping[str, Any]], names: Mapping[str, list[str]]) -> Values:
    """Values from what is found under the prefixes of their names, for example in a checkpoint.

    Args:
        find: Returns what is named with a prefix, by the rest of its name.
        names: As in `Values.named`.
    """
    found: dict[str, Any] = {
        field: dict(find(prefixes)) if isinstance(prefixes, str) else [dict(find(prefix)) for prefix in prefixes]
        for field, prefixes in _prefixes(names).items()
    }
    return Values(**found)


def _prefixes(names: Mapping[str, list[str]]) -> dict[str, Any]:
    """The prefix of the names in each field of `Values`, or a list of one for each component."""

    def each(kind: str, group: str) -> list[str]:
        return [f"{kind}/{name}/{group}/" for name in names[kind]]

    return {
        "generator": "generator/weights/",
        "generator_buffers": "generator/buffers/",
        "critic": "critic/weights/",
        "critic_buffers": "critic/buffers/",
        "parameters": each("constraints", "parameters"),
        "states": each("constraints", "state"),
        "generator_parameters": each("generator_constraints", "parameters"),
        "generator_states": each("generator_constraints", "state"),
        "loss": "loss/state/",
        "augmentations": each("augmentations", "state"),
    }
