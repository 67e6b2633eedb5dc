"""What chooses the settings of a sweep's trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Choices:
    """A setting that takes one of several values.

    Attributes:
        values: As an experiment file writes them: `("0.1", "1", "[@constraints.r1()]")`.
    """

    values: Sequence[str]


@dataclass(frozen=True)
class Range:
    """A setting that takes any number between two.

    Attributes:
        low: The smallest.
        high: The largest, which is possible too.
        log: Whether factors count rather than differences.
        integer: Whether it takes whole numbers alone.
    """

    low: float
    high: float
    log: bool = False
    integer: bool = False


Space = Mapping[str, Choices | Range]


@dataclass(frozen=True)
class Proposal:
    """A configuration that was tried, or is being tried.

    Attributes:
        settings: The value of every name of the space, as an experiment file writes it.
        value: Its objective, the mean over seeds, once it is known; None while it is not, and where it failed.
        ended: Whether it has ended, well or not.
        given_up: Whether it ended because the search gave it up; `value` is then the last one reported.
        reports: Once it has ended, the steps and values that its runs have to report. Of one that goes on, all are
            reported again.
    """

    settings: Mapping[str, str]
    value: float | None = None
    ended: bool = False
    given_up: bool = False
    reports: Sequence[tuple[int, float]] = ()


class Search:
    """Chooses configurations, one at a time; number n is the n-th one chosen, counted from 0."""

    needs_objective = False
    """Whether it learns from results, and so needs to be told what to make small or large.

    One that does not is asked for all of its proposals before the first trial starts, and is told nothing.
    """

    def start(
        self,
        space: Space,
        *,
        budget: int | None,
        seed: int,
        direction: Literal["minimize", "maximize"],
        history: Sequence[Proposal] = (),
    ) -> None:
        """Called once, before anything else.

        Args:
            space: What may be set, and to what.
            budget: How many configurations there may be, those of `history` included; None for as many as it likes.
            seed: Of whatever is drawn: with one seed and one order of results, one sequence of proposals.
            direction: Whether small or large objectives are good.
            history: The configurations of an earlier process of this sweep, in order; those that had not ended go on.

        Raises:
            ganlab.ConfigError: It cannot search this space so: a grid over a range, say.
        """
        raise NotImplementedError

    def propose(self) -> Mapping[str, str] | None:
        """The settings of one more configuration, or None where there is none to come."""
        raise NotImplementedError

    def report(self, number: int, step: int, value: float) -> bool:
        """Takes the objective of a configuration under way at a step; True to give it up.

        The value is the mean over those seeds that have begun, once all of them have it. Steps rise, each comes once.
        """
        return False

    def finish(self, number: int, value: float | None) -> None:
        """Takes the objective of a configuration that ended, the mean over seeds.

        It is None where a seed failed, and the last one reported where the search gave the configuration up.
        """
