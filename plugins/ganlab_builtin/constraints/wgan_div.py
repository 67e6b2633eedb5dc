"""The penalty of the Wasserstein divergence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge, Gt
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.slope_penalty import SlopePenalty


class WGANDiv(SlopePenalty):
    """Penalizes a high power of the critic's slope at points between real and fake examples.

    Wu, Huang, Thoma, Acharya and Van Gool, "Wasserstein divergence for GANs" (2018): `k * ||grad critic(x)||^p` at
    `x = a * real + (1 - a) * fake`, a uniform in [0, 1) for each example. The critic need not be Lipschitz: with the
    Wasserstein loss it comes near the Wasserstein divergence, which is a divergence without that condition.

    Logs `slope`, the mean over the points where it is taken.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "slope": (
            "The mean norm of the critic's gradient at points between real and fake examples, where the penalty "
            "is taken. It has no target: the divergence weighs a power of it against the estimate. What counts is "
            "that it does not grow."
        ),
    }

    def __init__(
        self, *, k: Annotated[float, Ge(0)] = 2.0, p: Annotated[float, Gt(1)] = 6.0, every: Annotated[int, Ge(1)] = 1
    ) -> None:
        """Chooses the penalty.

        Args:
            k: The penalty's factor; the paper's 2.
            p: The slope's power; the paper's 6. No divergence is defined at 1.
            every: Computes the penalty in one of this many critic updates, multiplied by this number.
        """
        self.k, self.p, self.every = k, p, every

    def cost(self, slope: tf.Tensor, state: Mapping[str, tf.Tensor], replica: ganlab.Replica) -> tf.Tensor:
        """The power of the slope, times k."""
        return self.k * tf.pow(slope, self.p)
