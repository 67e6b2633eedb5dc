"""Components that need no TensorFlow, for tests of experiment files; a plugin without packaging."""

from __future__ import annotations

from typing import Any, Literal

import ganlab
from ganlab.lazy import keras
from ganlab.lazy import tensorflow as tf


class Points(ganlab.Dataset):
    """A cloud of points.

    Args:
        count: How many.
        path: A file to take them from.
        labels: Classes to keep.
        spread: Per axis.
    """

    def __init__(
        self, *, count: int = 10, path: str = "", labels: list[int] | None = None, spread: tuple[float, ...] = (1.0,)
    ) -> None:
        self.count, self.path, self.labels, self.spread = count, path, labels, spread


class Table(ganlab.Dataset):
    """Rows of a file.

    Args:
        path: The file.
    """

    def __init__(self, *, path: str) -> None:
        self.path = path


class Small(ganlab.Architecture):
    """Two tiny networks."""

    def __init__(self, *, width: int = 8, residual: bool = False, options: dict[str, float] | None = None) -> None:
        self.width, self.residual, self.options = width, residual, options


class Plain(ganlab.Loss):
    """Scores alone."""


class Hinge(ganlab.Loss):
    """Scores up to a margin."""

    def __init__(self, *, margin: float = 1.0) -> None:
        self.margin = margin


class Penalty(ganlab.Constraint):
    """Keeps gradients small.

    Args:
        weight: How strongly.
        sides: Which slopes count.
    """

    def __init__(self, *, weight: float = 10.0, sides: Literal["one", "two"] = "two") -> None:
        self.weight, self.sides = weight, sides


class Every(ganlab.Constraint):
    """Applies another constraint now and then."""

    def __init__(self, *, inner: ganlab.Constraint, interval: int = 4) -> None:
        self.inner, self.interval = inner, interval


class Count(ganlab.Evaluator):
    """Counts samples."""

    def __init__(self, *, samples: int = 100) -> None:
        self.samples = samples


def one() -> tf.distribute.Strategy:
    """One device."""
    raise AssertionError("a test of files must not make this")


def many(*, replicas: int = 2, devices: Any = None) -> tf.distribute.Strategy:
    """Several devices."""
    raise AssertionError("a test of files must not make this")


def adam(
    *, learning_rate: float = 1e-4, beta: float = 0.9, schedule: keras.Schedule | None = None
) -> keras.optimizers.Optimizer:
    """Adam."""
    raise AssertionError("a test of files must not make this")


@ganlab.hookimpl
def ganlab_datasets():
    return {"points": Points, "table": Table}


@ganlab.hookimpl
def ganlab_architectures():
    return {"small": Small}


@ganlab.hookimpl
def ganlab_losses():
    return {"plain": Plain, "hinge": Hinge, "points": Plain}


@ganlab.hookimpl
def ganlab_constraints():
    return {"penalty": Penalty, "every": Every}


@ganlab.hookimpl
def ganlab_evaluators():
    return {"count": Count}


@ganlab.hookimpl
def ganlab_strategies():
    return {"one": one, "many": many}


@ganlab.hookimpl
def ganlab_optimizers():
    return {"adam": adam}
