"""Two trainings and their comparison, as an explanation takes them; and what an explanation is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ganlab.verification.comparing import Measure
from ganlab.verification.trace import Arrays, Trace


@dataclass(frozen=True)
class Finding:
    """Where two trainings part, and why.

    Attributes:
        cause: The mistake's name in a few words.
        where: The variable, metric or group of them that departs first.
        iteration: When, from 1; 0 is before training.
        size: By how much, relative to its norm (a variable: to how far it had moved).
        words: What was seen and what it means.
    """

    cause: str
    where: str
    iteration: int
    size: float
    words: str


@dataclass(frozen=True)
class Case:
    """What an explanation goes by.

    Attributes:
        reference: The training on one device.
        other: The training in question.
        measures: Their comparison, in the order in which a training computes it.
        without: Makes the first gradients of one device without a part of the critic's loss, by the part's name.
        projecting: The names of the constraints that project.
    """

    reference: Trace
    other: Trace
    measures: Sequence[Measure]
    without: Callable[[], Mapping[str, Arrays]] = dict
    projecting: Sequence[str] = ()

    @property
    def first(self) -> Measure | None:
        """The first departure: by iteration, then in the order of computation."""
        return min((m for m in self.measures if m.departs), key=lambda m: m.iteration, default=None)


def departure(measure: Measure, update: str = "") -> str:
    """A departure in words, without a full stop; `update` says in which update of the iteration."""
    when = f"at iteration {measure.iteration}{update}" if measure.iteration else "before training"
    title = measure.title.replace("the ", "The ", 1) if measure.title.startswith("the ") else measure.title
    return f"{title} departs first, {when}, by {measure.distance:.1e} (rounding: {measure.limit:.1e})"


def some(names: Sequence[str]) -> str:
    """The first of several names, and how many there are."""
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]
