"""A number of updates that is larger at the start of a run, and now and then."""

from __future__ import annotations

from typing import Annotated

import ganlab
from ganlab.bounds import Ge, Lt
from ganlab.lazy import tensorflow as tf


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
