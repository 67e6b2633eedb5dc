"""The path length regularization."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge, Lt
from ganlab.functional import example_norm, input_gradient
from ganlab.lazy import tensorflow as tf


class PathLength(ganlab.Constraint):
    """Asks a step in latent space to change samples equally much everywhere.

    Karras et al., "Analyzing and improving the image quality of StyleGAN" (2020), equation 4:
    `(||J^T y|| - a)^2`, where J is the generator's Jacobian by its latent vector, y a normal image divided by the root
    of the number of its pixels, and a the moving average of the lengths. For experiment.generator_constraints.

    The average moves in the updates that compute the penalty, as in PyTorch-StudioGAN (947b35e, src/worker.py:637 and
    src/utils/losses.py:182). There a penalty of half a batch has an update of its own, and lengths are those of the
    intermediate latent vectors, over which they are means; here it is added to the loss of the whole batch.

    Logs `length`, the mean of ||J^T y||, and `average`, a.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "length": "The mean length of the change of a sample, in a random direction, for a unit step in latent space.",
        "average": "The moving average of these lengths, which each is drawn to.",
    }

    def __init__(
        self,
        *,
        weight: Annotated[float, Ge(0)] = 2.0,
        decay: Annotated[float, Ge(0), Lt(1)] = 0.99,
        every: Annotated[int, Ge(1)] = 4,
    ) -> None:
        """Chooses the penalty.

        Args:
            weight: Its factor; the paper's code 2.
            decay: The decay of the average in one update with the penalty; the paper's code 0.99.
            every: Computes the penalty in one of this many generator updates, multiplied by this number; the paper's 4.
        """
        self.weight, self.decay, self.every = weight, decay, every

    def initial_state(self, weights: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The average length."""
        return {"average": tf.zeros([])}

    def advance(
        self,
        weights: Mapping[str, tf.Tensor],
        state: Mapping[str, tf.Tensor],
        batch: ganlab.Batch,
        replica: ganlab.Replica,
        generator: ganlab.Generator,
    ) -> dict[str, tf.Tensor]:
        """Moves the average to the mean over the global batch, where the penalty is due."""
        mean = replica.mean(tf.reduce_mean(self._lengths(generator, batch.latent, replica)))
        decay = tf.where(tf.equal(batch.step % self.every, 0), self.decay, 1.0)
        average = decay * state["average"] + (1.0 - decay) * mean
        replica.log("average", average)
        return {"average": average}

    def generator_penalty(
        self,
        generator: ganlab.Generator,
        critic: ganlab.Critic,
        batch: ganlab.Batch,
        state: Mapping[str, tf.Tensor],
        replica: ganlab.Replica,
    ) -> tf.Tensor:
        """The penalty of each latent vector."""
        length = self._lengths(generator, batch.latent, replica)
        replica.log("length", length)
        return self.weight * tf.square(length - state["average"])

    def _lengths(self, generator: ganlab.Generator, latent: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
        def along(latent: tf.Tensor) -> tf.Tensor:
            samples = generator(latent)
            pixels = math.prod(samples.shape[1:3]) if len(samples.shape) == 4 else 1
            direction = replica.normal(samples.shape) / math.sqrt(pixels)
            return tf.reduce_sum(samples * direction, axis=list(range(1, len(samples.shape))))

        return example_norm(input_gradient(along, latent)[0])
