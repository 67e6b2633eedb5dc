"""How `ganlab certify` shows bounds and intervals."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from ganlab.commands import print_table, say
from ganlab.files import line

if TYPE_CHECKING:
    from ganlab_certify import Certified, CertifiedDistance

_COUPLINGS = {
    "pairs": "the mean cost of examples and samples as drawn",
    "matching": "the mean cost of the optimal matching within batches",
}


def bounds_as_dict(bounds: Certified) -> dict[str, object]:
    """Bounds of a critic's constant, for JSON."""
    return {
        "step": bounds.step,
        "lower": bounds.lower,
        "upper": bounds.upper,
        "seconds": bounds.seconds,
        "rungs": [
            {"rung": r.name, "bound": r.bound, "by_label": r.by_label, "seconds": r.seconds, "note": r.note}
            for r in bounds.rungs
        ],
    }


def show_bounds(source: Path, bounds: Certified) -> None:
    """Prints bounds of the constant of a critic, of a run or a file, as a table."""
    say(f"{line(source)}{'' if bounds.step is None else f', step {bounds.step}'}: the critic's Lipschitz constant\n")
    rows = [("attacked", f"{bounds.lower:.5g}", "", f"{bounds.seconds:.1f}", "from below")]
    for rung in bounds.rungs:
        bound = "" if rung.bound is None else f"{rung.bound:.5g}"
        over = "" if rung.bound is None or not bounds.lower else f"{rung.bound / bounds.lower:.3g}"
        rows.append((rung.name, bound, over, f"{rung.seconds:.1f}", rung.note))
    print_table(("rung", ">bound", ">over attacked", ">seconds", "note"), rows)


def distance_as_dict(found: CertifiedDistance) -> dict[str, object]:
    """An interval for the distance, for JSON."""
    return {
        "step": found.step,
        **dataclasses.asdict(found.interval),
        "critic_constant": found.critic_constant,
        "assumptions": found.assumptions,
    }


def show_distance(run: Path, found: CertifiedDistance) -> None:
    """Prints an interval for the distance, what its ends rest on, and what it assumes."""
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
