"""The roles of the networks that a run trains: where each stands in an experiment, and in whose update it trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ganlab.composition import Experiment
from ganlab.interfaces import Architecture, Constraint

GENERATOR, CRITIC = "generator", "critic"


@dataclass(frozen=True)
class Role:
    """The role of a network.

    Attributes:
        name: Its name: in checkpoints, in messages, and of the architecture's method that makes the network.
        side: In whose update it is trained, the critic's or the generator's.
        optimizer: The setting of the experiment that has its optimizer. Each role gets an optimizer of its own.
        constraints: The setting that has its constraints; empty for none.
        of_latents: Whether its input is latent vectors; else it is examples.
        averaged: Whether moving averages of it are kept where the experiment asks for them.
    """

    name: str
    side: str
    optimizer: str
    constraints: str = ""
    of_latents: bool = False
    averaged: bool = False

    def input_shape(self, architecture: Architecture, sample_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of one row of its input."""
        return (int(architecture.latent_dim),) if self.of_latents else sample_shape

    def constraints_of(self, experiment: Experiment) -> tuple[Constraint, ...]:
        """Its constraints in an experiment."""
        return tuple(getattr(experiment, self.constraints)) if self.constraints else ()

    def optimizer_of(self, experiment: Experiment) -> Any:
        """The experiment's optimizer for it, of which a run makes its own."""
        return getattr(experiment, self.optimizer)

    def updates(self, experiment: Experiment) -> int:
        """How often it is trained in one step."""
        return experiment.critic_steps if self.side == CRITIC else 1


_TWO = (
    Role(GENERATOR, GENERATOR, "generator_optimizer", "generator_constraints", of_latents=True, averaged=True),
    Role(CRITIC, CRITIC, "critic_optimizer", "constraints"),
)
# The roles of every experiment, in the order in which networks are built, which decides their initial weights.
ROLES = {role.name: role for role in _TWO}
