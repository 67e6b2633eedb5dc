"""The zero-centered gradient penalty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.slope_penalty import SlopePenalty


class ZeroCenteredPenalty(SlopePenalty):
    """Penalizes any slope of the critic at points between real and fake examples.

    Thanh-Tung, Tran and Venkatesh, "Improving generalization and stability of generative adversarial networks" (2019):
    `weight * ||grad critic(x)||^2` at `x = a * real + (1 - a) * fake`, a uniform in [0, 1) for each example.

    Logs `slope`, the mean over the points where it is taken.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "slope": (
            "The mean norm of the critic's gradient at points between real and fake examples, where the penalty "
            "is taken. Its only target is 0, which it reaches when nothing is left to distinguish: what counts is "
            "that it does not grow."
        ),
    }

    def __init__(self, *, weight: Annotated[float, Ge(0)] = 10.0, every: Annotated[int, Ge(1)] = 1) -> None:
        """Chooses the penalty.

        Args:
            weight: The penalty's factor; the authors' code has 10 for points in the plane and 500 for images.
            every: Computes the penalty in one of this many critic updates, multiplied by this number.
        """
        self.weight, self.every = weight, every

    def cost(self, slope: tf.Tensor, state: Mapping[str, tf.Tensor], replica: ganlab.Replica) -> tf.Tensor:
        """The squared slope, times the weight."""
        return self.weight * tf.square(slope)
