"""Every combination of the values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Literal

import ganlab


class Grid(ganlab.Search):
    """Proposes every combination of the values, the last name's changing fastest."""

    def start(
        self,
        space: Mapping[str, ganlab.Choices | ganlab.Range],
        *,
        budget: int | None,
        seed: int,
        direction: Literal["minimize", "maximize"],
        history: Sequence[ganlab.Proposal] = (),
    ) -> None:
        """Takes the space; seed and direction change nothing."""
        values = []
        for name, choices in space.items():
            if isinstance(choices, ganlab.Range):
                raise ganlab.ConfigError(
                    f"searches.grid tries every value, and {name} takes any from {choices.low} to {choices.high}. "
                    "List its values, or use another search, for example --search random."
                )
            values.append(choices.values)
        combinations = math.prod(map(len, values))
        if budget is not None and budget < combinations:
            raise ganlab.ConfigError(
                f"searches.grid tries all {combinations} combinations, and a budget of {budget} does not allow that. "
                "Raise the budget or leave it out, or use another search, for example --search random."
            )
        tried = [dict(proposal.settings) for proposal in history]
        every = (dict(zip(space, combination, strict=True)) for combination in itertools.product(*values))
        self._rest = (settings for settings in every if settings not in tried)

    def propose(self) -> Mapping[str, str] | None:
        """The next combination."""
        return next(self._rest, None)
