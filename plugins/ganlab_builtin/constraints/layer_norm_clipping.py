"""Clipping by the norm of each layer's kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Gt
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.certified import Certified


class LayerNormClipping(Certified):
    """Scales every kernel down to a Euclidean (Frobenius') norm of at most `limit` after each update.

    One of the ways to bound weights that Gulrajani et al., "Improved training of Wasserstein GANs" (2017), section 3,
    compare with clipping by value ("L2 norm clipping"); Arjovsky, Chintala and Bottou, "Wasserstein GAN" (2017),
    section 3, mention projecting weights to a sphere. The norm is never below the largest singular value, so with the
    limit 1 dense layers are 1-Lipschitz. A kernel of r equal singular values has the norm `sqrt(r)` times each: the
    limit is tight for kernels of rank one, and draws kernels towards these.

    Logs `clipped`, the fraction of kernels within 1% of the limit. Biases are left alone.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "clipped": (
            "The fraction of kernels within 1% of the limit. Near 1 the limit decides the critic's slope; near 0 "
            "it does nothing."
        ),
    }

    def __init__(self, *, limit: Annotated[float, Gt(0)] = 1.0) -> None:
        """Chooses the limit.

        Args:
            limit: The largest norm of a kernel.
        """
        self.limit = limit

    def advance(
        self,
        weights: Mapping[str, tf.Tensor],
        state: Mapping[str, tf.Tensor],
        batch: ganlab.Batch,
        replica: ganlab.Replica,
    ) -> Mapping[str, tf.Tensor]:
        """Changes nothing; logs the fraction of kernels at the limit."""
        norms = [tf.norm(weight) for weight in weights.values() if len(weight.shape) >= 2]
        replica.log("clipped", tf.cast(tf.stack(norms) >= 0.99 * self.limit, tf.float32))
        return state

    def project(self, weights: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Every kernel over its norm where that is above the limit, times the limit."""
        return {
            name: tf.clip_by_norm(weight, self.limit) if len(weight.shape) >= 2 else weight
            for name, weight in weights.items()
        }
