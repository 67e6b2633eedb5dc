"""Conformance of searches: proposals lie within the space, are the same for the same seed, and end."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ganlab import Choices, Proposal, Range, Search
from ganlab.errors import ConfigError
from ganlab_verify.testing.conformance import Conformance, check, fail

_BUDGET = 6


class SearchConformance(Conformance):
    """Checks a search against its contract on a small space.

    class TestMine(SearchConformance):
        def make(self):
            return Mine()
    """

    kind, role = "searches", Search

    def _space(self) -> Mapping[str, Choices | Range]:
        choices: dict[str, Choices | Range] = {
            "a.x": Choices(("1", "10")),
            "b.y": Choices(("'relu'", "'tanh'", "'elu'")),
        }
        ranges: dict[str, Choices | Range] = {"c.z": Range(0.1, 10.0, log=True), "d.n": Range(1, 4, integer=True)}
        for space in ({**choices, **ranges}, choices):
            try:
                self.make().start(space, budget=_BUDGET, seed=0, direction="minimize")
            except ConfigError:
                continue
            return space
        pytest.skip("It accepts neither the kit's values nor its ranges.")

    def _proposals(self, history: list[Proposal] | None = None) -> list[dict[str, str]]:
        search, space = self.make(), self._space()
        search.start(space, budget=_BUDGET, seed=5, direction="minimize", history=history or [])
        made: list[dict[str, str]] = []
        while (proposal := search.propose()) is not None and len(made) < 10 * _BUDGET:
            number = len(history or []) + len(made)
            made.append(dict(proposal))
            if search.needs_objective:
                search.report(number, 1, 1.0 / (1 + number))
                search.finish(number, 1.0 / (1 + number))
        return made

    @check(first=True)
    def test_proposals_are_within_the_space_and_end(self) -> None:
        """Every name gets one of its values, or a number in its range, as text; the budget is respected."""
        space, made = self._space(), self._proposals()
        if not 0 < len(made) <= _BUDGET:
            fail(f"It proposed {len(made)} configurations with a budget of {_BUDGET}. Return None at the end.")
        for proposal in made:
            if proposal.keys() != space.keys():
                fail(f"It proposed values for {sorted(proposal)}; the space has {sorted(space)}.")
            for name, value in proposal.items():
                if not isinstance(value, str) or not _within(value, space[name]):
                    fail(f"It proposed {name} = {value!r}; it must be the text of a value in {space[name]!r}.")

    @check()
    def test_one_seed_gives_one_sequence(self) -> None:
        """With the same seed and results it proposes the same."""
        if self._proposals() != self._proposals():
            fail("The same seed and results gave different proposals. Draw from seed and the proposal's number.")

    @check()
    def test_a_sweep_that_goes_on_proposes_what_is_left(self) -> None:
        """Started with a history, it continues with the proposals that would have come next."""
        made = self._proposals()
        valued = self.make().needs_objective
        history = [
            Proposal(settings, value=1.0 / (1 + n) if valued else None, ended=True, reports=[(1, 1.0 / (1 + n))])
            for n, settings in enumerate(made[:2])
        ]
        if (rest := self._proposals(history)) != made[2:]:
            fail(f"After a history of two it proposed {rest}, but without an interruption {made[2:]}.")


def _within(value: str, axis: Choices | Range) -> bool:
    if isinstance(axis, Choices):
        return value in axis.values
    try:
        number = int(value) if axis.integer else float(value)
    except ValueError:
        return False
    return axis.low <= number <= axis.high
