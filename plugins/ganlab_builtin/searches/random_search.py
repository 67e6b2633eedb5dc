"""Settings drawn at random."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Literal

import ganlab

# After this many repeats in a row all have been proposed: of 500 combinations the last is missed twice in a billion.
_DRAWS = 10_000


class Random(ganlab.Search):
    """Draws each setting by itself, evenly: over the values, over the numbers of a range, or over their logarithms.

    Proposal number n depends on the seed, on n and on the earlier proposals, which are not repeated. Bergstra & Bengio
    (2012) explain why this beats a grid: if few settings matter, each trial tries another value of those.
    """

    def start(
        self,
        space: Mapping[str, ganlab.Choices | ganlab.Range],
        *,
        budget: int | None,
        seed: int,
        direction: Literal["minimize", "maximize"],
        history: Sequence[ganlab.Proposal] = (),
    ) -> None:
        """Takes the space; the direction changes nothing."""
        if budget is None:
            raise ganlab.ConfigError(
                "searches.random draws without end: limit the number of configurations, for example with --budget 20."
            )
        self._space, self._budget, self._seed = space, budget, seed
        self._proposed = [dict(proposal.settings) for proposal in history]

    def propose(self) -> Mapping[str, str] | None:
        """A new draw; None after the budget, or if no new one is left."""
        number = len(self._proposed)
        if number >= self._budget:
            return None
        # A string as seed goes through SHA-512: neighbouring seeds and numbers give unrelated draws.
        generator = random.Random(f"{self._seed} {number}")
        for _ in range(_DRAWS):
            settings = {name: _drawn(axis, generator.random()) for name, axis in self._space.items()}
            if settings not in self._proposed:
                self._proposed.append(settings)
                return settings
        return None


def _drawn(axis: ganlab.Choices | ganlab.Range, share: float) -> str:
    """The value at a share, from 0 to below 1, of the way through an axis."""
    if isinstance(axis, ganlab.Choices):
        return axis.values[int(share * len(axis.values))]
    # A whole number stands for all numbers that round to it, or the ends would come up half as often.
    margin = 0.5 if axis.integer else 0.0
    low, high = axis.low - margin, axis.high + margin
    value = low * (high / low) ** share if axis.log else low + (high - low) * share
    if axis.integer:
        return str(min(max(math.floor(value + 0.5), int(axis.low)), int(axis.high)))
    # Six digits are plenty, and short enough for the name of a folder.
    return repr(min(max(float(f"{value:.6g}"), axis.low), axis.high))
