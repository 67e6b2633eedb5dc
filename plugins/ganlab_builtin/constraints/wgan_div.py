"""The penalty of the Wasserstein divergence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import ganlab
from ganlab.functional import interpolate, slopes
from ganlab.lazy import tensorflow as tf


class WGANDiv(ganlab.Constraint):
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
            every: Takes the penalty only in every so many critic updates, multiplied by that number.

        Raises:
            ConfigError: `k` is negative, `p` not above 1, or `every` below 1.
        """
        for name, value, least in (("k", k, 0), ("every", every, 1)):
            if not least <= value < math.inf:
                raise ganlab.ConfigError(
                    f"constraints.wgan_div.{name} = {value!r} must be at least {least} and finite."
                )
        if not 1 < p < math.inf:
            raise ganlab.ConfigError(
                f"constraints.wgan_div.p = {p!r} must be finite and above 1: no divergence is defined at 1."
            )
        self.k, self.p, self.every = k, p, every

    def penalty(
        self, critic: ganlab.Critic, batch: ganlab.Batch, state: Mapping[str, tf.Tensor], replica: ganlab.Replica
    ) -> tf.Tensor:
        """The penalty of each example, at one point between its real and its fake half."""
        points = interpolate(batch.real, batch.fake, replica.uniform([batch.real.shape[0]]))
        slope = slopes(critic, points)
        replica.log("slope", slope)
        return self.k * tf.pow(slope, self.p)
