"""The one-sided gradient penalty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.slope_penalty import SlopePenalty
from ganlab_builtin.constraints.thresholds import STEEP


class LipschitzPenalty(SlopePenalty):
    """Penalizes slopes above `target` at points between real and fake examples, and none below.

    Petzka, Fischer and Lukovnikov, "On the regularization of Wasserstein GANs" (2018), equation 8 (WGAN-LP):
    `weight * max(0, ||grad critic(x)|| - 1)^2` at `x = a * real + (1 - a) * fake`, a uniform in [0, 1) for each
    example. An optimal critic may be flatter than 1 between examples that no optimal plan couples.

    Logs `slope`, the mean over the points where it is taken, and `exceeding`, the fraction of them above the target.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "slope": (
            "The mean norm of the critic's gradient at points between real and fake examples, where the penalty "
            "is taken. Sound up to the target, which is allowed; smaller costs nothing."
        ),
        "exceeding": "The fraction of these points where the slope is above the target.",
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
            weight: The penalty's factor.
            target: The largest slope that costs nothing.
            every: Computes the penalty in one of this many critic updates, multiplied by this number.
        """
        self.weight, self.target, self.every = weight, target, every

    def cost(self, slope: tf.Tensor, state: Mapping[str, tf.Tensor], replica: ganlab.Replica) -> tf.Tensor:
        """The squared excess of the slope over the target, times the weight."""
        replica.log("exceeding", tf.cast(slope > self.target, tf.float32))
        return self.weight * tf.square(tf.nn.relu(slope - self.target))

    def diagnose(self, metrics: Mapping[str, float]) -> str | None:
        """Warns of slopes at twice the target or more."""
        if not self.target or metrics["slope"] < STEEP * self.target:
            return None
        return (
            f"The critic's mean slope is {metrics['slope']:.3g} where {self.target:g} is allowed, steep: the penalty "
            "does not hold the critic. Try a larger constraints.lipschitz_penalty.weight."
        )
