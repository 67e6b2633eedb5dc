"""Closed-loop control: a penalty on scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf


class ClosedLoopControl(ganlab.Constraint):
    """Pulls the scores of real examples and of samples towards zero, as a controller with negative feedback does (CLC).

    Xu, Li, Zhu and Zhang, "Understanding and stabilizing GANs' training dynamics using control theory" (2020): the
    penalty is `weight * (D(x)^2 + D(G(z))^2)`. A Wasserstein GAN of linear networks then converges, instead of
    circling. The paper also takes scores at examples and samples of earlier batches, this only those of the present
    one. It bounds no slope.
    """

    differentiates = False

    def __init__(self, *, weight: Annotated[float, Ge(0)] = 1.0) -> None:
        """Chooses the penalty.

        Args:
            weight: Its factor, the gain of the controller.
        """
        self.weight = weight

    def penalty(
        self, critic: ganlab.Critic, batch: ganlab.Batch, state: Mapping[str, tf.Tensor], replica: ganlab.Replica
    ) -> tf.Tensor:
        """The penalty of each real example and the sample beside it."""
        return self.weight * (tf.square(critic(batch.real)) + tf.square(critic(batch.fake)))
