"""How `ganlab certify --distance` shows an interval."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ganlab.cli.messages import say
from ganlab.support.terminal import line

if TYPE_CHECKING:
    from ganlab.training.distance import CertifiedDistance

_COUPLINGS = {
    "pairs": "the mean cost of examples and samples as drawn",
    "matching": "the mean cost of the optimal matching within batches",
}


def as_dict(found: CertifiedDistance) -> dict[str, object]:
    """For JSON."""
    return {
        "step": found.step,
        **dataclasses.asdict(found.interval),
        "critic_constant": found.critic_constant,
        "assumptions": found.assumptions,
    }


def show(run: str, found: CertifiedDistance) -> None:
    """Prints the interval, what its ends rest on, and what it assumes."""
    interval = found.interval
    say(f"{line(run)}, step {found.step}: the Wasserstein-1 distance between data and generator\n")
    say(f"{interval.lower:.5g} to {interval.upper:.5g}, at {interval.confidence:.5g} confidence\n")
    say(f"From below: {_function(found)}; {interval.lower_radius:.3g} given away to chance.")
    say(f"From above: {_COUPLINGS[interval.upper_by]}; {interval.upper_radius:.3g} added for chance.")
    say("Assumed:")
    for sentence in found.assumptions:
        say(f"- {line(sentence)}")


def _function(found: CertifiedDistance) -> str:
    name = found.interval.lower_by
    if name == "critic":
        return f"the critic over its certified constant, {found.critic_constant:.5g}"
    if name == "nothing":
        return "0, since no function tells data and samples apart"
    if name == "direction":
        return "the projection on the difference of the means"
    if name in ("cones at examples", "cones at samples"):
        return f"Kantorovich's potentials of a sample, extended by {name}"
    return f"the upper envelope of {name}, fitted to a sample"
