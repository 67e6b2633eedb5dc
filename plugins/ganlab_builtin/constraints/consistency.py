"""The consistency term."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf

if TYPE_CHECKING:
    import keras


class Consistency(ganlab.Constraint):
    """Penalizes a critic with noisy layers for scoring one real example differently twice.

    Wei, Gong, Liu, Lu and Wang, "Improving the improved training of Wasserstein GANs: a consistency term and its dual
    effect" (2018): `weight * max(0, d - margin)` with `d = (critic'(x) - critic''(x))^2` at real examples x, where
    critic' and critic'' are two passes with noise of their own. The paper adds to d a tenth of the distance between the
    two passes' features before the last layer: that term is missing here, because a constraint sees only scores. The
    paper uses it together with constraints.gradient_penalty.

    Logs `difference`, the mean of |critic'(x) - critic''(x)|.
    """

    differentiates = False
    metric_help: ClassVar[dict[str, str]] = {
        "difference": (
            "The mean absolute difference between the scores that two noisy passes give one real example: how "
            "much of the critic is noise."
        ),
    }

    def __init__(
        self,
        *,
        weight: Annotated[float, Ge(0)] = 2.0,
        margin: Annotated[float, Ge(0)] = 0.0,
        every: Annotated[int, Ge(1)] = 1,
    ) -> None:
        """Chooses the penalty.

        Args:
            weight: The penalty's factor; the paper's 2.
            margin: The squared difference that costs nothing; the paper's M', 0 to 0.2.
            every: Computes the penalty in one of this many critic updates, multiplied by this number.
        """
        self.weight, self.margin, self.every = weight, margin, every

    def prepare(self, critic: keras.Model) -> None:
        """Refuses a critic without a noisy layer, whose two passes would be one."""
        if not ganlab.layers.noisy_layers(critic):
            raise ganlab.IncompatibleError(
                f"constraints.consistency compares two noisy passes, and the critic {critic.name!r} has no noise. Set "
                "architectures.mlp.dropout or architectures.dcgan.dropout above 0, or put ganlab.layers.Dropout or "
                "ganlab.layers.GaussianNoise into your own critic."
            )

    def penalty(
        self, critic: ganlab.Critic, batch: ganlab.Batch, state: Mapping[str, tf.Tensor], replica: ganlab.Replica
    ) -> tf.Tensor:
        """The penalty of each example, from two passes over its real half."""
        difference = critic(batch.real) - critic(batch.real)
        replica.log("difference", tf.abs(difference))
        return self.weight * tf.nn.relu(tf.square(difference) - self.margin)
