"""The input of an explanation (two trainings and their comparison) and its result, a finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ganlab_verify.comparing import Measure, first_departure
from ganlab_verify.trace import Arrays, Trace


@dataclass(frozen=True)
class Finding:
    """The point where two trainings diverge, and the reason.

    Attributes:
        cause: The mistake's name in a few words.
        where: The variable, metric or group of them that departs first.
        iteration: The iteration, from 1; 0 is before training.
        size: The difference relative to its norm (for a variable: to how far it had moved).
        words: The observation and its explanation.
    """

    cause: str
    where: str
    iteration: int
    size: float
    words: str


@dataclass(frozen=True)
class Case:
    """The evidence for an explanation.

    Attributes:
        reference: The training on one device.
        other: The training to explain.
        measures: Their comparison, in the order in which a training computes it.
        without: Computes the first gradients of one device without a part of the critic's loss, by the part's name.
        projecting: The names of the constraints that project.
    """

    reference: Trace
    other: Trace
    measures: Sequence[Measure]
    without: Callable[[], Mapping[str, Arrays]] = dict
    projecting: Sequence[str] = ()

    @property
    def first(self) -> Measure | None:
        """The first departure."""
        return first_departure(self.measures)


def departure(measure: Measure, update: str = "") -> str:
    """A departure in words, without a full stop; `update` names the update within the iteration."""
    when = f"at iteration {measure.iteration}{update}" if measure.iteration else "before training"
    title = measure.title.replace("the ", "The ", 1) if measure.title.startswith("the ") else measure.title
    return f"{title} departs first, {when}, by {measure.distance:.1e} (rounding: {measure.limit:.1e})"
