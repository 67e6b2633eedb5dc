"""Networks as chains of matrices and activations, which the tighter certificates take apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


class UnsuitableError(Exception):
    """A certificate does not suit a network; the message is the reason."""


@dataclass(frozen=True)
class Stage:
    """One step `x -> activation(matrix x + bias)` of a chain, in float64.

    Attributes:
        matrix: `(units, inputs)`.
        bias: `(units,)`.
        lower: The least slope of each unit's activation, `(units,)`.
        upper: The largest, likewise.
        group: Above 1, the activation sorts groups of this many neighbours, and `lower` and `upper` are -1 and 1.
        kink: For piecewise linear activations with one kink at zero, their slopes below, `(units,)`; the slope above is
            1, and so is that below of units which are passed on.
        apply: The activation, on arrays; None where intervals cannot be pushed through it.
    """

    matrix: np.ndarray
    bias: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    group: int = 1
    kink: np.ndarray | None = None
    apply: Callable[[np.ndarray], np.ndarray] | None = None

    @property
    def centre(self) -> np.ndarray:
        """The middle of each unit's slopes, `(units,)`."""
        return (self.lower + self.upper) / 2

    @property
    def radius(self) -> np.ndarray:
        """Half the width of each unit's slopes, `(units,)`."""
        return (self.upper - self.lower) / 2


@dataclass(frozen=True)
class Chain:
    """A network of one score, `x -> last activation(...) + bias`.

    Attributes:
        stages: The steps before the last matrix.
        last: The weights of the score, `(units,)`.
        bias: Its bias.
    """

    stages: tuple[Stage, ...]
    last: np.ndarray
    bias: float

    @property
    def of_rectifiers(self) -> bool:
        """Whether every activation is piecewise linear with one kink, at zero."""
        return all(stage.kink is not None for stage in self.stages)

    @property
    def inputs(self) -> int:
        """The number of input numbers."""
        return int(self.stages[0].matrix.shape[1] if self.stages else self.last.shape[0])
