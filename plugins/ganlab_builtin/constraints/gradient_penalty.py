"""The gradient penalty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.slope_penalty import SlopePenalty
from ganlab_builtin.constraints.thresholds import off_target


class GradientPenalty(SlopePenalty):
    """Penalizes the critic's slope at points between real and fake examples for being other than `target`.

    Gulrajani, Ahmed, Arjovsky, Dumoulin and Courville, "Improved training of Wasserstein GANs" (2017), equation 3:
    `weight * (||grad critic(x)|| - 1)^2` at `x = a * real + (1 - a) * fake`, a uniform in [0, 1) for each example.

    Logs `slope`, the mean over the points where it is taken.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "slope": (
            "The mean norm of the critic's gradient at points between real and fake examples, where the penalty "
            "is taken. Sound near the target (1 by default): twice that is steep, and the penalty does not hold "
            "the critic; below half of it the critic gives little signal. A larger weight brings it nearer."
        ),
    }

    def __init__(
        self,
        *,
        weight: Annotated[float, Ge(0)] = 10.0,
        target: Annotated[float, Ge(0)] = 1.0,
        every: Annotated[int, Ge(1)] = 1,
    ) -> None:
        """Chooses the penalty.

        Args:
            weight: The penalty's factor; the paper's 10 for images, 0.1 for its toy data.
            target: The slope that costs nothing.
            every: Computes the penalty in one of this many critic updates, multiplied by this number.
        """
        self.weight, self.target, self.every = weight, target, every

    def cost(self, slope: tf.Tensor, state: Mapping[str, tf.Tensor], replica: ganlab.Replica) -> tf.Tensor:
        """The squared distance of the slope from the target, times the weight."""
        return self.weight * tf.square(slope - self.target)

    def diagnose(self, metrics: Mapping[str, float]) -> str | None:
        """Warns of slopes at twice the target or more, or less than half of it."""
        far = off_target(metrics["slope"], self.target, "constraints.gradient_penalty.weight")
        return far and f"The critic's mean slope is {far}"
