"""The maximum gradient penalty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.slope_penalty import SlopePenalty


class MaxGradientPenalty(SlopePenalty):
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

    def __init__(self, *, weight: Annotated[float, Ge(0)] = 1.0) -> None:
        """Chooses the penalty.

        Args:
            weight: The penalty's factor, which the paper tunes for its data.
        """
        self.weight = weight

    def cost(self, slope: tf.Tensor, state: Mapping[str, tf.Tensor], replica: ganlab.Replica) -> tf.Tensor:
        """The same for every example: the core's mean over the global batch is the penalty itself."""
        steepest = replica.max(tf.reduce_max(slope))
        replica.log("steepest", steepest, reduce="max")
        return tf.fill(slope.shape, self.weight * tf.square(steepest))
