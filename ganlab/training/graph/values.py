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
        """What the critic's optimizer trains: its weights, then the constraints' parameters."""
        return [*self.critic.values(), *(value for group in self.parameters for value in group.values())]

    @property
    def generator_trained(self) -> list[tf.Tensor]:
        """What the generator's optimizer trains, likewise."""
        return [*self.generator.values(), *(value for group in self.generator_parameters for value in group.values())]

    def named(self, names: Mapping[str, list[str]]) -> dict[str, Any]:
        """Every value under the name that it has in checkpoints and messages.

        Args:
            names: The names of the constraints, generator constraints and augmentations, by these words.
        """
        found: dict[str, Any] = {}
        for role in ("generator", "critic"):
            found |= {f"{role}/weights/{key}": value for key, value in getattr(self, role).items()}
            found |= {f"{role}/buffers/{key}": value for key, value in getattr(self, f"{role}_buffers").items()}
        for prefix, groups in self._groups(names):
            found |= {f"{prefix}{key}": value for key, value in groups.items()}
        return found

    def _groups(self, names: Mapping[str, list[str]]) -> list[tuple[str, Tensors]]:
        groups: list[tuple[str, Tensors]] = []
        for kind, parameters, states in (
            ("constraints", self.parameters, self.states),
            ("generator_constraints", self.generator_parameters, self.generator_states),
        ):
            for i, name in enumerate(names[kind]):
                groups += [(f"{kind}/{name}/parameters/", parameters[i]), (f"{kind}/{name}/state/", states[i])]
        groups.append(("loss/state/", self.loss))
        groups += [
            (f"augmentations/{name}/state/", state)
            for name, state in zip(names["augmentations"], self.augmentations, strict=True)
        ]
        return groups


def collected(find: Callable[[str], Mapping[str, Any]], names: Mapping[str, list[str]]) -> Values:
    """Values from what is found under the prefixes of their names, for example in a checkpoint.

    Args:
        find: Returns what is named with a prefix, by the rest of its name.
        names: As in `Values.named`.
    """

    def each(kind: str, group: str) -> list[Any]:
        return [dict(find(f"{kind}/{name}/{group}/")) for name in names[kind]]

    return Values(
        critic=dict(find("critic/weights/")),
        critic_buffers=dict(find("critic/buffers/")),
        parameters=each("constraints", "parameters"),
        states=each("constraints", "state"),
        generator=dict(find("generator/weights/")),
        generator_buffers=dict(find("generator/buffers/")),
        generator_parameters=each("generator_constraints", "parameters"),
        generator_states=each("generator_constraints", "state"),
        loss=dict(find("loss/state/")),
        augmentations=each("augmentations", "state"),
    )
