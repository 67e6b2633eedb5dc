"""Values that move from one number to another over steps of training, and then stay."""

from __future__ import annotations

import math
from typing import Annotated

import ganlab
from ganlab.bounds import Ge, Lt
from ganlab.lazy import tensorflow as tf


class Linear(ganlab.Schedule):
    """A straight line from one value to another."""

    def __init__(
        self,
        *,
        start: Annotated[float, Lt(math.inf)],
        end: Annotated[float, Lt(math.inf)],
        over: Annotated[int, Ge(1), Lt(2**31)] | None = None,
    ) -> None:
        """Sets the ends.

        Args:
            start: The value in step 0.
            end: The value from step `over` on.
            over: Generator updates on the way; None for all of the run's.
        """
        self.start, self.end, self.over = start, end, over

    def value(self, step: tf.Tensor, steps: int) -> tf.Tensor:
        """`start + (end - start) * min(1, step / over)`."""
        return self.start + (self.end - self.start) * tf.minimum(1.0, step / float(self.over or steps))


class Cosine(Linear):
    """Half a wave of the cosine from one value to another, flat at both ends.

    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts" (2017), equation 5, without restarts.
    """

    def value(self, step: tf.Tensor, steps: int) -> tf.Tensor:
        """`end + (start - end) * (1 + cos(pi * min(1, step / over))) / 2`."""
        done = tf.minimum(1.0, step / float(self.over or steps))
        return self.end + (self.start - self.end) * 0.5 * (1.0 + tf.cos(math.pi * done))


class ConstantThenLinear(ganlab.Schedule):
    """One value up to a step, then a straight line to another, as learning rates of many GANs fall."""

    def __init__(
        self,
        *,
        start: Annotated[float, Lt(math.inf)],
        end: Annotated[float, Lt(math.inf)] = 0.0,
        turn: Annotated[int, Ge(0), Lt(2**31)],
        over: Annotated[int, Ge(1), Lt(2**31)] | None = None,
    ) -> None:
        """Sets the values and where the line begins.

        Args:
            start: The value up to step `turn`.
            end: The value at the end of the line and after it.
            turn: The step in which the line begins.
            over: Generator updates on the line; None for the rest of the run's.
        """
        self.start, self.end, self.turn, self.over = start, end, turn, over

    def value(self, step: tf.Tensor, steps: int) -> tf.Tensor:
        """`start + (end - start) * min(1, max(0, step - turn) / over)`."""
        over = float(self.over or max(1, steps - self.turn))
        done = tf.minimum(1.0, tf.maximum(0.0, step - float(self.turn)) / over)
        return self.start + (self.end - self.start) * done


class Warmup(ganlab.Schedule):
    """A straight line from zero, or another fraction, to a value that then stays."""

    def __init__(
        self,
        *,
        value: Annotated[float, Lt(math.inf)],
        over: Annotated[int, Ge(1), Lt(2**31)],
        fraction: Annotated[float, Ge(0)] = 0.0,
    ) -> None:
        """Sets the value and the way to it.

        Args:
            value: The value from step `over` on.
            over: Generator updates on the way.
            fraction: The part of the value in step 0.
        """
        self.final, self.over, self.fraction = value, over, fraction
        self.start = value * fraction

    def value(self, step: tf.Tensor, steps: int) -> tf.Tensor:
        """`value * (fraction + (1 - fraction) * min(1, step / over))`."""
        done = tf.minimum(1.0, step / float(self.over))
        return self.final * (self.fraction + (1.0 - self.fraction) * done)
