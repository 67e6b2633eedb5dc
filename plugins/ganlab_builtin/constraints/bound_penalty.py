"""The penalty on the product of the layers' norms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

import ganlab
from ganlab import lipschitz
from ganlab.bounds import Ge, Gt, Le
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.certified import FollowedNorms


class BoundPenalty(FollowedNorms):
    """Penalizes the product of the layers' norms, which bounds the slope of a critic without branches.

    `weight * max(0, prod(||W||) - target)^2` over the kernels W, a convolution's norm being that of the map that it
    performs. Leino, Wang and Fredrikson, "Globally-robust neural networks" (2021) train with that product: they use it
    inside the loss, to shrink margins, and leave the layers free to share the product among them, as here. A layer may
    be steep where others are flat, unlike under constraints.spectral_norm.

    The norms are followed by power iteration, whose vectors are kept as state and move once per update; they approach
    the norms from below. Activations and other layers count as 1. The certificate counts everything, from above.

    Logs `product`, that of the norms as followed.
    """

    warm_up: ClassVar[int] = 20  # come within a few percent for most kernels
    metric_help: ClassVar[dict[str, str]] = {
        "product": (
            "The product of the kernels' norms, by power iteration: near the target where the penalty holds the critic."
        ),
    }

    def __init__(
        self,
        *,
        weight: Annotated[float, Ge(0)] = 1.0,
        target: Annotated[float, Gt(0)] = 1.0,
        power_iterations: Annotated[int, Ge(1), Le(10_000)] = 1,
    ) -> None:
        """Chooses the penalty.

        Args:
            weight: The penalty's factor.
            target: The product that costs nothing.
            power_iterations: Power iterations per critic update.
        """
        self.weight, self.target, self.power_iterations = weight, target, power_iterations

    def measure(self, norms: Sequence[tf.Tensor], replica: ganlab.Replica) -> None:
        """Logs their product."""
        replica.log("product", tf.reduce_prod(tf.stack(norms)))

    def weight_penalty(self, weights: Mapping[str, tf.Tensor], state: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The penalty, a scalar."""
        product = tf.ones([])
        for name, operator in self._operators.items():
            product *= lipschitz.spectral_norm(operator, weights[name], state[name])[0]
        return self.weight * tf.square(tf.nn.relu(product - self.target))
