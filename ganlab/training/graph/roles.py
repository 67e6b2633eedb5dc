"""The roles of the networks that a run trains: where each stands in an experiment, and in whose update it trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ganlab.composition import Experiment
from ganlab.interfaces import Constraint

GENERATOR, CRITIC = "generator", "critic"


@dataclass(frozen=True)
class Role:
    """The role of a network.

    Attributes:
        name: Its name, in checkpoints and in messages.
        side: In whose update it is trained, the critic's or the generator's.
        optimizer: The setting of the experiment that has its optimizer, with `/` before a network's name. Each role
            gets an optimizer of its own.
        constraints: The setting that has its constraints, likewise.
    """

    name: str
    side: str
    optimizer: str
    constraints: str

    @property
    def averaged(self) -> bool:
        """Whether moving averages of it are kept where the experiment asks for them."""
        return self.side == GENERATOR

    def constraints_of(self, experiment: Experiment) -> tuple[Constraint, ...]:
        """Its constraints in an experiment."""
        return tuple(_value(experiment, self.constraints))

    def optimizer_of(self, experiment: Experiment) -> Any:
        """The experiment's optimizer for it, of which a run makes its own."""
        return _value(experiment, self.optimizer)


# The roles of every experiment, in the order in which networks are built, which decides their initial weights.
ROLES = {
    GENERATOR: Role(GENERATOR, GENERATOR, "generator_optimizer", "generator_constraints"),
    CRITIC: Role(CRITIC, CRITIC, "critic_optimizer", "constraints"),
}


def role_of(name: str, side: str, experiment: Experiment | None = None) -> Role:
    """The role of a network: of a further one of the architecture, with the optimizer of its side or its own."""
    if name in ROLES:
        return ROLES[name]
    own = experiment is not None and name in (experiment.optimizers or {})
    return Role(name, side, f"optimizers/{name}" if own else f"{side}_optimizer", f"network_constraints/{name}")


def written(setting: str) -> str:
    """A setting of a role as experiment files and messages write it."""
    part, _, name = setting.partition("/")
    return f"experiment.{part}[{name!r}]" if name else f"experiment.{part}"


def _value(experiment: Experiment, setting: str) -> Any:
    part, _, name = setting.partition("/")
    value = getattr(experiment, part)
    return (value or {}).get(name, ()) if name else value
