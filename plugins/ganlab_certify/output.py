"""How `ganlab certify` shows bounds and intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from ganlab.commands import print_table, say
from ganlab.files import line

if TYPE_CHECKING:
    from ganlab_certify import Certified, CertifiedDistance, SampleDistance, W1Interval

_COUPLINGS = {
    "pairs": "the mean cost of examples and samples as drawn",
    "matching": "the mean cost of the optimal matching within batches",
}


_Command = TypeVar("_Command", bound=Callable[..., object])


def interval_options(samples: str, confidence: str) -> Callable[[_Command], _Command]:
    """The options of a command that bounds a distance by samples, with these texts of help."""
    chance = click.FloatRange(0.5, 1.0, max_open=True)
    first = click.option("--samples", type=click.IntRange(16), default=16_384, show_default=True, help=samples)
    second = click.option("--confidence", type=chance, default=0.95, show_default=True, help=confidence)
    return lambda command: first(second(command))


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
        **({} if bounds.rounding is None else {"rounding": dataclasses.asdict(bounds.rounding)}),
    }


def show_bounds(source: Path, bounds: Certified) -> None:
    """Prints bounds of the constant of a critic, of a run or a file, as a table."""
    say(f"{line(source)}{'' if bounds.step is None else f', step {bounds.step}'}: the critic's Lipschitz constant\n")
    by = next((f", by {rung.name}" for rung in bounds.rungs if rung.lower == bounds.lower > 0), "")
    rows = [("attacked", f"{bounds.lower:.5g}", "", f"{bounds.seconds:.1f}", f"from below{by}")]
    for rung in bounds.rungs:
        bound = "" if rung.bound is None else f"{rung.bound:.5g}"
        over = "" if rung.bound is None or not bounds.lower else f"{rung.bound / bounds.lower:.3g}"
        rows.append((rung.name, bound, over, f"{rung.seconds:.1f}", rung.note))
    print_table(("rung", ">bound", ">over attacked", ">seconds", "note"), rows)
    rounding = bounds.rounding
    if rounding is not None and rounding.error is None:
        say(f"\nIt trained in {rounding.precision}. {rounding.note}")
    elif rounding is not None and bounds.upper:
        apart = 0.1 * rounding.radius
        say(
            f"\nIt trained in {rounding.precision}, whose scores are off by at most {rounding.error:.3g} at points of "
            f"norm up to {rounding.radius:.4g}: for those at least {apart:.3g} apart, the bound grows by the factor "
            f"{rounding.factor(bounds.upper, apart):.5g}. For nearer ones there is none."
        )


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
    say(f"{line(run)}, step {found.step}: the Wasserstein-1 distance between data and generator\n")
    _show_interval(found.interval, found.assumptions, found.critic_constant)


def show_sample_distance(names: tuple[Path, Path], found: SampleDistance) -> None:
    """Prints an interval for the distance between distributions, and figures of samples of them."""
    first, second = map(line, names)
    counts = "{:,} and {:,}".format(*found.compared)
    say(f"{first}, {second}: the Wasserstein-1 distance between the distributions of {counts} rows\n")
    _show_interval(found.interval, found.assumptions)
    say(f"\nBetween {found.points:,} rows of each:")
    rows = [("exact W1", found.exact_w1, ""), ("sliced W1", found.sliced_w1, "")]
    rows += [("energy distance", found.energy_distance, f"{found.energy_p:.3g}")]
    rows += [("squared MMD", found.mmd_squared, f"{found.mmd_p:.3g}")]
    print_table(("", ">value", ">p"), ((name, f"{value:.5g}", p) for name, value, p in rows))


def _show_interval(interval: W1Interval, assumptions: list[str], critic_constant: float | None = None) -> None:
    say(f"{interval.lower:.5g} to {interval.upper:.5g}, at {interval.confidence:.5g} confidence\n")
    function = _function(interval.lower_by, critic_constant)
    say(f"From below: {function}; {interval.lower_radius:.3g} given away to chance.")
    say(f"From above: {_COUPLINGS[interval.upper_by]}; {interval.upper_radius:.3g} added for chance.")
    say("Assumed:")
    for sentence in assumptions:
        say(f"- {line(sentence)}")


def _function(name: str, critic_constant: float | None) -> str:
    if name == "critic":
        return f"the critic over its certified constant, {critic_constant:.5g}"
    if name == "nothing":
        return "0, since no function tells data and samples apart"
    if name == "direction":
        return "the projection on the difference of the means"
    if name in ("cones at examples", "cones at samples"):
        return f"Kantorovich's potentials of a sample, extended by {name}"
    return f"the upper envelope of {name}, fitted to a sample"
