"""The mode-seeking regularization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf

# As in the paper's code: what keeps the inverse ratio finite.
_EPSILON = 1e-5


class ModeSeeking(ganlab.Constraint):
    """Asks the generator to map latent vectors that are apart to samples that are apart.

    Mao, Lee, Tseng, Ma and Yang, "Mode seeking generative adversarial networks for diverse image synthesis" (2019),
    equation 2: it maximizes `d(G(z1), G(z2)) / d(z1, z2)` with mean absolute differences as d; as in the paper's code
    the penalty is the inverse of that ratio. z2 is drawn anew, with z1's label. For experiment.generator_constraints.

    Logs `ratio`, the mean of the ratio.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "ratio": "How far samples are apart for each unit that their latent vectors are: near 0 where modes collapse.",
    }

    differentiates = False

    def __init__(self, *, weight: Annotated[float, Ge(0)] = 1.0) -> None:
        """Chooses the penalty.

        Args:
            weight: Its factor; the paper's 1.
        """
        self.weight = weight

    def generator_penalty(
        self,
        generator: ganlab.Generator,
        critic: ganlab.Critic,
        batch: ganlab.Batch,
        state: Mapping[str, tf.Tensor],
        replica: ganlab.Replica,
    ) -> tf.Tensor:
        """The penalty of each sample."""
        other = replica.normal(batch.latent.shape)
        ratio = _distances(batch.fake, generator(other)) / _distances(batch.latent, other)
        replica.log("ratio", ratio)
        return self.weight / (ratio + _EPSILON)


def _distances(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(tf.abs(a - b), axis=list(range(1, len(a.shape))))
