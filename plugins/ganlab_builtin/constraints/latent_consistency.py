"""Consistency of scores, and variety of samples, under small changes of latent vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge, Gt
from ganlab.functional import example_norm
from ganlab.lazy import tensorflow as tf


class LatentConsistency(ganlab.Constraint):
    """Nearby latent vectors: the critic is to score their samples alike, the generator to keep them apart.

    zCR: Zhao et al., "Improved consistency regularization for GANs" (2021), algorithm 3, with noise of deviation
    `noise` on z: the critic pays `weight * (D(G(z)) - D(G(z + noise)))^2`, the generator
    `-generator_weight * ||G(z) - G(z + noise)||^2`. Put it in experiment.constraints and in
    experiment.generator_constraints.

    Logs `difference` on the critic, `distance` on the generator, both means.
    """

    differentiates = False
    metric_help: ClassVar[dict[str, str]] = {
        "difference": "The mean absolute difference between the scores of samples of nearby latent vectors.",
        "distance": "The mean Euclidean distance of samples of nearby latent vectors.",
    }

    def __init__(
        self,
        *,
        weight: Annotated[float, Ge(0)] = 5.0,
        generator_weight: Annotated[float, Ge(0)] = 0.5,
        noise: Annotated[float, Gt(0)] = 0.07,
    ) -> None:
        """Chooses the penalties.

        Args:
            weight: The factor on the critic; the paper's 5.
            generator_weight: The factor on the generator; the paper's 0.5.
            noise: The deviation of the change of each number of a latent vector; the paper's 0.07.
        """
        self.weight, self.generator_weight, self.noise = weight, generator_weight, noise

    def penalty(
        self,
        critic: ganlab.Critic,
        batch: ganlab.Batch,
        state: Mapping[str, tf.Tensor],
        replica: ganlab.Replica,
        generator: ganlab.Generator,
    ) -> tf.Tensor:
        """The critic's penalty of each sample."""
        latent = batch.latent
        near = tf.stop_gradient(generator(latent + self.noise * replica.normal(latent.shape)))
        difference = critic(tf.stop_gradient(generator(latent))) - critic(near)
        replica.log("difference", tf.abs(difference))
        return self.weight * tf.square(difference)

    def generator_penalty(
        self,
        generator: ganlab.Generator,
        critic: ganlab.Critic,
        batch: ganlab.Batch,
        state: Mapping[str, tf.Tensor],
        replica: ganlab.Replica,
    ) -> tf.Tensor:
        """The generator's penalty of each sample."""
        near = generator(batch.latent + self.noise * replica.normal(batch.latent.shape))
        distance = example_norm(batch.fake - near)
        replica.log("distance", distance)
        return -self.generator_weight * tf.square(distance)
