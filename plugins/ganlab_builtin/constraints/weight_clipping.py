"""Weight clipping."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Gt
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.certified import Certified

_MOSTLY = 0.5


class WeightClipping(Certified):
    """Clips every weight of the critic to [-limit, limit] after each update.

    Arjovsky, Chintala and Bottou, "Wasserstein GAN" (2017), algorithm 1, line 7. Biases are clipped too, as in the
    paper's code. The critic is Lipschitz with some constant that depends on the limit and the depth, so critic scores
    are Wasserstein distances only up to an unknown factor.

    Logs `saturated`, the fraction of weights within 1% of the limit: Gulrajani et al. (2017), figure 1b, show them
    piling up there.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "saturated": (
            "The fraction of weights within 1% of the clipping limit. Above a half the critic can be little but a "
            "sum of its inputs: choose another limit or a gradient penalty."
        ),
    }

    def __init__(self, *, limit: Annotated[float, Gt(0)] = 0.01) -> None:
        """Chooses the limit.

        Args:
            limit: The largest absolute value of a weight; the paper's 0.01.
        """
        self.limit = limit

    def advance(
        self,
        weights: Mapping[str, tf.Tensor],
        state: Mapping[str, tf.Tensor],
        batch: ganlab.Batch,
        replica: ganlab.Replica,
    ) -> Mapping[str, tf.Tensor]:
        """Changes nothing; logs the fraction of weights at the limit."""
        flat = tf.concat([tf.reshape(weight, [-1]) for weight in weights.values()], axis=0)
        replica.log("saturated", tf.cast(tf.abs(flat) >= 0.99 * self.limit, tf.float32))
        return state

    def diagnose(self, metrics: Mapping[str, float]) -> str | None:
        """Warns if most weights are at the limit."""
        if metrics["saturated"] <= _MOSTLY:
            return None
        return (
            f"{metrics['saturated']:.0%} of the critic's weights are at the clipping limit {self.limit:g}: it can be "
            "little but a sum of its inputs. Try another constraints.weight_clipping.limit, a shallower critic, or "
            "constraints.gradient_penalty."
        )

    def project(self, weights: Mapping[str, tf.Tensor]) -> Mapping[str, tf.Tensor]:
        """The weights clipped by value."""
        return {name: tf.clip_by_value(weight, -self.limit, self.limit) for name, weight in weights.items()}
