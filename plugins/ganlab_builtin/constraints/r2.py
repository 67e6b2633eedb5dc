"""The gradient penalty at fake examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.slope_penalty import SlopePenalty


class R2(SlopePenalty):
    """Penalizes any slope of the critic at fake examples.

    Mescheder, Geiger and Nowozin, "Which training methods for GANs do actually converge?" (2018), section 4.1, the
    regularizer R2: `gamma / 2 * ||grad critic(x)||^2` at fake examples x.

    Logs `slope`, the mean at fake examples.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "slope": (
            "The mean norm of the critic's gradient at fake examples. The penalty pulls it to 0: what counts is "
            "that it does not grow."
        ),
    }

    def __init__(self, *, gamma: Annotated[float, Ge(0)] = 10.0, every: Annotated[int, Ge(1)] = 1) -> None:
        """Chooses the penalty.

        Args:
            gamma: Twice the penalty's factor; the paper's 10.
            every: Computes the penalty in one of this many critic updates, multiplied by this number; 16 in StyleGAN2.
        """
        self.gamma, self.every = gamma, every

    def points(self, batch: ganlab.Batch, state: Mapping[str, tf.Tensor], replica: ganlab.Replica) -> tf.Tensor:
        """The fake examples."""
        return batch.fake

    def cost(self, slope: tf.Tensor, state: Mapping[str, tf.Tensor], replica: ganlab.Replica) -> tf.Tensor:
        """Half of gamma times the squared slope."""
        return 0.5 * self.gamma * tf.square(slope)
