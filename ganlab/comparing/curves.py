"""Curves over steps: a configuration's mean with a band over its seeds."""

from __future__ import annotations

from dataclasses import dataclass

from ganlab.comparing.comparison import Comparison


@dataclass(frozen=True)
class Curve:
    """One metric of one configuration over steps.

    Attributes:
        label: The configuration's.
        steps: Generator updates done.
        mean: Over the runs, a value a step.
        low: The band's lower end.
        high: The band's upper end.
        n: How many runs each step has.
    """

    label: str
    steps: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    n: tuple[int, ...]


def curves(comparison: Comparison, tag: str, *, replicas: bool = False) -> tuple[Curve, ...]:
    """The curves of a metric, one a configuration that has it.

    Args:
        comparison: Whose runs.
        tag: The metric.
        replicas: Of how far the replicas of a run are apart, the largest value less the smallest, instead.
    """
    raise NotImplementedError
