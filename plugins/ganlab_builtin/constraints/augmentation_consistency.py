"""Consistency of scores under augmentations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.augmentations.changes import alone


class AugmentationConsistency(ganlab.Constraint):
    """Penalizes a critic for scoring an example and its augmented self differently.

    CR: Zhang, Zhang, Odena and Lee, "Consistency regularization for generative adversarial networks" (2020), equation
    5, `weight * (D(x) - D(T(x)))^2` at real examples. bCR: Zhao, Singh, Lee, Zhang, Odena and Zhang, "Improved
    consistency regularization for GANs" (2021), algorithm 2, with the same at samples, `fake_weight` above 0.

    Logs `difference`, the mean of |D(x) - D(T(x))| at real examples.
    """

    differentiates = False
    metric_help: ClassVar[dict[str, str]] = {
        "difference": "The mean absolute difference between the scores of real examples and of these augmented.",
    }

    def __init__(
        self,
        *,
        augmentation: ganlab.Augmentation,
        weight: Annotated[float, Ge(0)] = 10.0,
        fake_weight: Annotated[float, Ge(0)] = 0.0,
    ) -> None:
        """Chooses the penalty.

        Args:
            augmentation: Changes examples without changing what they show.
            weight: The factor at real examples; the papers' 10.
            fake_weight: The factor at samples; bCR's 10, 0 for CR.
        """
        self.augmentation, self.weight, self.fake_weight = augmentation, weight, fake_weight

    def penalty(
        self, critic: ganlab.Critic, batch: ganlab.Batch, state: Mapping[str, tf.Tensor], replica: ganlab.Replica
    ) -> tf.Tensor:
        """The penalty of the real and the fake example of each row."""
        real = self._difference(critic, batch.real, replica)
        replica.log("difference", tf.abs(real))
        total = self.weight * tf.square(real)
        if self.fake_weight:
            total += self.fake_weight * tf.square(self._difference(critic, batch.fake, replica))
        return total

    def _difference(self, critic: ganlab.Critic, x: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
        changed = self.augmentation.apply(x, self.augmentation.initial_state(), replica)
        return critic(x) - critic(alone(changed, "constraints.augmentation_consistency.augmentation"))
