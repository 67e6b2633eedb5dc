"""The penalty of the Wasserstein divergence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import ganlab
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.bounds import check_at_least
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

    def __init__(self, *, k: float = 2.0, p: float = 6.0, every: int = 1) -> None:
        """Chooses the penalty.

        Args:
            k: The penalty's factor; the paper's 2.
            p: The slope's power; the paper's 6.
            every: Computes the penalty in one of this many critic updates, multiplied by this number.

        Raises:
            ConfigError: `k` is negative, `p` not above 1, or `every` below 1.
        """
        check_at_least("constraints.wgan_div", 0, k=k)
        check_at_least("constraints.wgan_div", 1, every=every)
        if not 1 < p < math.inf:
            raise ganlab.ConfigError(
                f"constraints.wgan_div.p = {p!r} must be finite and above 1: no divergence is defined at 1."
            )
        self.k, self.p, self.every = k, p, every

    def cost(self, slope: tf.Tensor, state: Mapping[str, tf.Tensor], replica: ganlab.Replica) -> tf.Tensor:
        """The power of the slope, times k."""
        return self.k * tf.pow(slope, self.p)
