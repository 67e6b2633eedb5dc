"""The base class of penalties on the critic's slope, each of which adds its equation."""

from __future__ import annotations

from collections.abc import Mapping

import ganlab
from ganlab.functional import interpolate, slopes
from ganlab.lazy import tensorflow as tf


class SlopePenalty(ganlab.Constraint):
    """Base class: a cost of the critic's slope at one point for each example, which is logged as `slope`.

    A subclass overrides `cost` with its equation, and `points` or `slope` where they differ.
    """

    def points(self, batch: ganlab.Batch, state: Mapping[str, tf.Tensor], replica: ganlab.Replica) -> tf.Tensor:
        """The points: here one between each real and fake example, `a * real + (1 - a) * fake` with a uniform."""
        return interpolate(batch.real, batch.fake, replica.uniform([batch.real.shape[0]]))

    def slope(self, critic: ganlab.Critic, points: tf.Tensor) -> tf.Tensor:
        """The slope at each point, `(local_batch,)`: here the gradient's Euclidean norm."""
        return slopes(critic, points)

    def cost(self, slope: tf.Tensor, state: Mapping[str, tf.Tensor], replica: ganlab.Replica) -> tf.Tensor:
        """The penalty of each slope, `(local_batch,)`."""
        raise NotImplementedError(f"{type(self).__name__} needs a method cost(self, slope, state, replica).")

    def penalty(
        self, critic: ganlab.Critic, batch: ganlab.Batch, state: Mapping[str, tf.Tensor], replica: ganlab.Replica
    ) -> tf.Tensor:
        """The penalty of each example."""
        slope = self.slope(critic, self.points(batch, state, replica))
        replica.log("slope", slope)
        return self.cost(slope, state, replica)
