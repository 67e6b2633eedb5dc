"""Values that move from one number to another over steps of training, and then stay; and one that recurs."""

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


class Bursts(ganlab.Schedule):
    """One value in most steps, and another in the first ones and in each of an interval.

    The critic's updates in the code of Arjovsky, Chintala and Bottou, "Wasserstein GAN" (2017), main.py, lines 176 to
    179 of martinarjovsky/WassersteinGAN at f7a01e8: 100 where `gen_iterations < 25 or gen_iterations % 500 == 0`,
    else 5.
    """

    def __init__(
        self,
        *,
        value: Annotated[float, Ge(0)] = 5.0,
        burst: Annotated[float, Ge(0)] = 100.0,
        first: Annotated[int, Ge(0), Lt(2**31)] = 25,
        every: Annotated[int, Ge(0), Lt(2**31)] = 500,
    ) -> None:
        """Sets both values and when each holds.

        Args:
            value: The value of most steps.
            burst: That of the others.
            first: How many steps at the start have it.
            every: After them each step whose number is a multiple of this has it; 0 for none.
        """
        self.usual, self.burst, self.first, self.every = value, burst, first, every
        self.start = burst if first or every else value

    def value(self, step: tf.Tensor, steps: int) -> tf.Tensor:
        """`burst` where `step < first or step % every == 0`, else `value`."""
        due = step < float(self.first)
        if self.every:
            due |= tf.equal(tf.math.floormod(step, float(self.every)), 0.0)
        return tf.where(due, self.burst, self.usual)
