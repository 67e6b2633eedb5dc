"""The maximum gradient penalty."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import ganlab
from ganlab.functional import interpolate, slopes
from ganlab.lazy import tensorflow as tf


class MaxGradientPenalty(ganlab.Constraint):
    """Penalizes the steepest of the slopes at points between real and fake examples of the global batch.

    Zhou, Liang, Song, Yu, Wang, Zhang, Yu and Zhang, "Lipschitz generative adversarial nets" (2019): `weight * k^2`
    with the critic's Lipschitz constant k, for which the largest slope at the points `a * real + (1 - a) * fake`
    stands, a uniform in [0, 1) for each example. The maximum is over all replicas.

    The collective is in the penalty, because the maximum needs its gradient. So under several replicas XLA does not
    compile the critic's part, and the penalty is taken in every update.

    Logs `slope`, the mean over the points, and `steepest`, the maximum.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "slope": (
            "The mean norm of the critic's gradient at points between real and fake examples, where the penalty "
            "is taken."
        ),
        "steepest": "The largest of these slopes on any replica, which is what the penalty counts.",
    }

    def __init__(self, *, weight: float = 1.0) -> None:
        """Chooses the penalty.

        Args:
            weight: The penalty's factor, which the paper tunes for its data.

        Raises:
            ConfigError: The weight is negative.
        """
        if not 0 <= weight < math.inf:
            raise ganlab.ConfigError(
                f"constraints.max_gradient_penalty.weight = {weight!r} must be at least 0 and finite."
            )
        self.weight = weight

    def penalty(
        self, critic: ganlab.Critic, batch: ganlab.Batch, state: Mapping[str, tf.Tensor], replica: ganlab.Replica
    ) -> tf.Tensor:
        """The same for every example: the core's mean over the global batch is the penalty itself."""
        points = interpolate(batch.real, batch.fake, replica.uniform([batch.real.shape[0]]))
        slope = slopes(critic, points)
        steepest = replica.max(tf.reduce_max(slope))
        replica.log("slope", slope)
        replica.log("steepest", steepest, reduce="max")
        return tf.fill([batch.real.shape[0]], self.weight * tf.square(steepest))
