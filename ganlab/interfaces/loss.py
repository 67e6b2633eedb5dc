"""The loss role: the losses of critic and generator, per example."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import tensorflow as tf


class Loss:
    """The two losses of an adversarial game. The core sums over the batch and divides by its global size.

    Attributes:
        metric_help: Explanations of `critic/loss` and `generator/loss`, by these names, for `ganlab config explain`.
    """

    metric_help: ClassVar[Mapping[str, str]] = {}

    def critic(self, real_scores: tf.Tensor, fake_scores: tf.Tensor) -> tf.Tensor:
        """The loss that the critic minimizes: `(local_batch,)` from scores of that shape, float32."""
        raise NotImplementedError

    def generator(self, fake_scores: tf.Tensor) -> tf.Tensor:
        """The loss that the generator minimizes: `(local_batch,)` from scores of that shape, float32."""
        raise NotImplementedError
