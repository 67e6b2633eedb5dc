"""Weight clipping."""

from __future__ import annotations

from collections.abc import Mapping

import ganlab
from ganlab.lazy import tensorflow as tf


class WeightClipping(ganlab.Constraint):
    """Clips every weight of the critic to [-limit, limit] after each update.

    Arjovsky, Chintala and Bottou, "Wasserstein GAN" (2017), algorithm 1, line 7. Biases are clipped too, as in the
    paper's code. The critic is Lipschitz with some constant that depends on the limit and the depth, so critic scores
    are Wasserstein distances only up to an unknown factor.
    """

    def __init__(self, *, limit: float = 0.01) -> None:
        """Chooses the limit.

        Args:
            limit: The largest absolute value of a weight; the paper's 0.01.

        Raises:
            ConfigError: It is not positive.
        """
        if not limit > 0:
            raise ganlab.ConfigError(f"constraints.weight_clipping.limit = {limit!r} must be above 0.")
        self.limit = limit

    def project(self, weights: Mapping[str, tf.Tensor]) -> Mapping[str, tf.Tensor]:
        """The weights clipped by value."""
        return {name: tf.clip_by_value(weight, -self.limit, self.limit) for name, weight in weights.items()}
