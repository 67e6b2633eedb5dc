"""The search role: chooses the settings of a sweep's trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Choices:
    """A setting that takes one of several values.

    Attributes:
        values: The values as an experiment file writes them: `("0.1", "1", "[@constraints.r1()]")`.
    """

    values: Sequence[str]


@dataclass(frozen=True)
class Range:
    """A setting that takes any number between two.

    Attributes:
        low: The smallest.
        high: The largest, inclusive.
        log: Whether to search on a logarithmic scale.
        integer: Whether it takes only whole numbers.
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
        value: Its objective, the mean over seeds, once it is known; None until then, and if it failed.
        ended: Whether it has ended, successfully or not.
        given_up: Whether it ended because the search gave it up; `value` is then the last one reported.
        reports: Once it has ended or was given up, the steps and values that were reported. For a configuration that
            is resumed, all are reported again.
    """

    settings: Mapping[str, str]
    value: float | None = None
    ended: bool = False
    given_up: bool = False
    reports: Sequence[tuple[int, float]] = ()


class Search:
    """Chooses configurations, one at a time; number n is the n-th one chosen, counted from 0."""

    needs_objective = False
    """Whether it learns from results, and so needs an objective to minimize or maximize.

    A search that does not is asked for all of its proposals before the first trial starts, and receives no results.
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
            space: The settings to choose, and their possible values.
            budget: The most configurations there may be, those of `history` included; None for no limit.
            seed: The seed of all random choices: one seed and one order of results give one sequence of proposals.
            direction: Whether small or large objectives are good.
            history: The configurations of an earlier process of this sweep, in order; those that had not ended resume.

        Raises:
            ganlab.ConfigError: It cannot search such a space, for example a grid cannot search a range.
        """
        raise NotImplementedError

    def propose(self) -> Mapping[str, str] | None:
        """The settings of one more configuration, or None if there are no more."""
        raise NotImplementedError

    def report(self, number: int, step: int, value: float) -> bool:
        """Takes the objective at a step of a running configuration; returns True to give it up.

        The value is the mean over the seeds that have begun, once all of them have it. Steps rise, and each comes once.
        After the first True nothing more is reported of that configuration, whatever its runs still write.
        """
        return False

    def finish(self, number: int, value: float | None) -> None:
        """Takes the objective of a configuration that ended, the mean over seeds.

        It is None if a seed failed, and the last one reported if the search gave the configuration up.
        """
