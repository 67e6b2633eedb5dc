"""The penalty on drifting scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf


class ScoreDrift(ganlab.Constraint):
    """Keeps the scores of real examples from drifting away from zero.

    Karras, Aila, Laine and Lehtinen, "Progressive growing of GANs for improved quality, stability, and variation"
    (2018), appendix A.1: `weight * D(x)^2` at real examples, beside the gradient penalty. A Wasserstein critic's
    scores have no zero of their own.

    Logs `score`, the mean score of real examples.
    """

    differentiates = False
    metric_help: ClassVar[dict[str, str]] = {"score": "The mean score of real examples, which is held near zero."}

    def __init__(self, *, weight: Annotated[float, Ge(0)] = 1e-3) -> None:
        """Chooses the penalty.

        Args:
            weight: Its factor; the paper's 0.001.
        """
        self.weight = weight

    def penalty(
        self, critic: ganlab.Critic, batch: ganlab.Batch, state: Mapping[str, tf.Tensor], replica: ganlab.Replica
    ) -> tf.Tensor:
        """The penalty of each real example."""
        scores = critic(batch.real)
        replica.log("score", scores)
        return self.weight * tf.square(scores)
