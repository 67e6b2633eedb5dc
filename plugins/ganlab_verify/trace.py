"""The record of one training for comparison: only numbers, so that comparing needs no TensorFlow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

Arrays = Mapping[str, np.ndarray]

_REDUCTIONS: dict[str, Callable[..., np.ndarray]] = {"mean": np.mean, "max": np.max, "min": np.min, "sum": np.sum}


@dataclass(frozen=True)
class Iteration:
    """One iteration of training.

    Attributes:
        metrics: Every metric of every replica, `(replicas, metrics)`.
        gradients: The gradient of every trained variable as replicas hand it to the optimizer, summed over replicas,
            `(updates, *shape)`.
        applied: The gradient that the optimizer then applied on the first replica, likewise.
        repeated: Names of the gradients that are bit for bit equal on every replica.
        variables: Every variable after the iteration, as the first replica has it.
        apart: The variables whose copies on the replicas are not bit-equal, with the difference relative to the norm.
        applied_apart: The trained variables whose applied gradients are not bit-equal on the replicas, likewise.
    """

    metrics: np.ndarray
    gradients: Arrays
    applied: Arrays
    repeated: frozenset[str]
    variables: Arrays
    apart: Mapping[str, float] = field(default_factory=dict)
    applied_apart: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Trace:
    """A training of a few iterations.

    Attributes:
        replicas: The number of replicas.
        tags: The metrics' names, in the order of `Iteration.metrics`.
        reductions: How each is reduced over replicas: "mean", "max", "min" or "sum".
        witness: The prefix of the tags that describe each replica's inputs: see `recording.Witness`.
        before: Every variable before training.
        iterations: The iterations.
        lone: Names of the variables that have fewer copies than there are replicas.
    """

    replicas: int
    tags: Sequence[str]
    reductions: Sequence[str]
    witness: str
    before: Arrays
    iterations: Sequence[Iteration]
    lone: tuple[str, ...] = field(default=())

    def metric(self, tag: str) -> np.ndarray:
        """One metric of every iteration and replica, float64 `(iterations, replicas)`."""
        column = list(self.tags).index(tag)
        return np.stack([iteration.metrics[:, column] for iteration in self.iterations]).astype(np.float64)

    def reduced(self, tag: str) -> np.ndarray:
        """One metric over replicas, float64 `(iterations,)`."""
        return _REDUCTIONS[self.reductions[list(self.tags).index(tag)]](self.metric(tag), axis=1)


def norm(arrays: Iterable[np.ndarray]) -> float:
    """The Euclidean norm of arrays taken as one vector."""
    return math.sqrt(sum(float(np.sum(np.square(array, dtype=np.float64))) for array in arrays))


def apart(copies: Sequence[np.ndarray]) -> float:
    """How far the copies of one value are from the first, relative to its norm: 0 where they are bit for bit equal."""
    first, *rest = copies
    if all(copy.tobytes() == first.tobytes() for copy in rest):
        return 0.0
    difference = max(norm([np.asarray(copy, np.float64) - first]) for copy in rest)
    return difference / (norm([first]) or 1.0) or math.nan  # nan: equal except for the bits, like 0.0 and -0.0
