"""Ratios of two things timed in turn.

Absolute times mean little on shared machines: other work slows down both of a pair alike, so every figure is the
median over rounds of the ratio within a round, and its spread the quartiles. Which of the two goes first alternates.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """The cost of one thing relative to another.

    Attributes:
        name: The two things that are compared.
        pairs: Seconds (or bytes) of both in each round.
        bar: The largest ratio that is good enough; None if there is none.
    """

    name: str
    pairs: Sequence[tuple[float, float]]
    bar: float | None = None

    @property
    def ratios(self) -> list[float]:
        """The first over the second, by round."""
        return [first / second for first, second in self.pairs]

    @property
    def median(self) -> float:
        """The median of the rounds' ratios."""
        return statistics.median(self.ratios)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The quartiles of the rounds' ratios, between neighbours where they fall between two; of one round itself."""
        if len(self.ratios) == 1:
            return self.ratios[0], self.ratios[0]
        low, _, high = statistics.quantiles(self.ratios, n=4, method="inclusive")
        return low, high

    @property
    def seconds(self) -> tuple[float, float]:
        """The median of each alone."""
        return statistics.median(p[0] for p in self.pairs), statistics.median(p[1] for p in self.pairs)

    def as_json(self) -> dict[str, object]:
        """Plain values: the figures, and the rounds that they come from."""
        return {
            "name": self.name,
            "ratio": self.median,
            "quartiles": list(self.quartiles),
            "each": list(self.seconds),
            "bar": self.bar,
            "rounds": [list(pair) for pair in self.pairs],
        }


@dataclass(frozen=True)
class Figure:
    """A number that is not a ratio.

    Attributes:
        name: The name of the quantity.
        value: The number.
        unit: Its unit.
        bar: The largest that is good enough; None if there is none.
    """

    name: str
    value: float
    unit: str
    bar: float | None = None

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        return {"name": self.name, "value": self.value, "unit": self.unit, "bar": self.bar}


def alternate(first: Callable[[], object], second: Callable[[], object], rounds: int) -> list[tuple[float, float]]:
    """Seconds of both, in turn, `rounds` times; each of them goes first in every other round."""
    return in_turn(lambda: seconds_of(first), lambda: seconds_of(second), rounds)


def in_turn(first: Callable[[], float], second: Callable[[], float], rounds: int) -> list[tuple[float, float]]:
    """The results of two functions called in turn, `rounds` times; which one goes first alternates."""
    pairs = []
    for i in range(rounds):
        if i % 2:
            late = second()
            pairs.append((first(), late))
        else:
            early = first()
            pairs.append((early, second()))
    return pairs


def seconds_of(function: Callable[[], object]) -> float:
    """How long one call takes."""
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def chunk_of(train: Callable[[int], object], seconds: float) -> int:
    """How many iterations take about that long, by timing one."""
    return max(1, round(seconds / seconds_of(lambda: train(1))))


def compare(
    name: str,
    first: Callable[[int], object],
    second: Callable[[int], object],
    rounds: int,
    *,
    seconds: float = 1.0,
    bar: float | None = None,
) -> Ratio:
    """The cost of an iteration of one training relative to another's.

    Args:
        name: The two things that are compared.
        first: Trains the given number of iterations.
        second: Likewise.
        rounds: How many rounds.
        seconds: How long the second trains in each.
        bar: The largest ratio that is good enough.

    Returns:
        The ratio; its pairs are seconds an iteration.
    """
    for train in (first, second):
        train(1)  # traces
        train(1)
    chunk = chunk_of(second, seconds)
    pairs = alternate(lambda: first(chunk), lambda: second(chunk), rounds)
    return Ratio(name, [(a / chunk, b / chunk) for a, b in pairs], bar)
