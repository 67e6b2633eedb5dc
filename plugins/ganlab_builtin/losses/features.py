"""The generator matches what the critic sees: on average, or as it is distributed in the critic's direction."""

from __future__ import annotations

from typing import Any, ClassVar

import ganlab
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.losses.around_a_game import AroundAGame
from ganlab_builtin.losses.games import NonSaturating
from ganlab_builtin.losses.pairwise import EMBEDDING, rows


class FeatureMatching(AroundAGame):
    """The generator matches the mean of the critic's features, while the critic plays an ordinary game.

    Salimans, Goodfellow, Zaremba, Cheung, Radford and Chen, "Improved techniques for training GANs" (2016), section
    3.1: the generator minimizes `||E f(X_r) - E f(X_g)||^2`, with means over the global batch.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": "The game's loss, plus the penalty.",
        "generator/loss": "The squared distance between the mean features of real examples and of samples.",
    }

    def __init__(self, *, game: ganlab.Loss | None = None, output: str = EMBEDDING) -> None:
        """Chooses the critic's game, and its features.

        Args:
            game: The loss that trains the critic; None for losses.non_saturating, the paper's.
            output: The critic's output to match, for example `embedding` of architectures.mlp with an embedding_dim,
                from which its score is taken.
        """
        super().__init__(game or NonSaturating(), pairs=True, outputs=(output,))
        self.output = output

    def generator(
        self,
        fake_scores: tf.Tensor,
        real_scores: tf.Tensor | None = None,
        *,
        batch: ganlab.Batch,
        replica: ganlab.Replica,
        **_: Any,
    ) -> tf.Tensor:
        """The squared distance of the means, the same for every sample, `(n,)`."""
        real, fake = (rows(outputs[self.output]) for outputs in (batch.real_outputs, batch.fake_outputs))
        difference = replica.mean(tf.reduce_mean(real - fake, axis=0))
        return tf.fill([fake.shape[0]], tf.reduce_sum(tf.square(difference)))


class MaxSliced(AroundAGame):
    """The generator lowers the Wasserstein distance in the direction in which the critic tells real from fake best.

    Deshpande et al., "Max-sliced Wasserstein distance and its use for GANs" (2019), arXiv 1904.05877, algorithm 1: the
    maximum over directions of the critic's features is replaced by the direction that a surrogate trains together with
    the features, here the critic's last layer and the game. The generator minimizes the squared Wasserstein-2 distance
    of the projections, which are the scores: the mean squared difference of the sorted scores of real examples and of
    samples, over the global batch. The direction has length one under constraints.spectral_norm; else the distance is
    scaled by the square of its length.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": "The game's loss, plus the penalty.",
        "generator/loss": "The squared Wasserstein-2 distance of the scores: 0 where they are distributed alike.",
    }

    def __init__(self, *, game: ganlab.Loss | None = None) -> None:
        """Chooses the surrogate.

        Args:
            game: The loss that trains the critic; None for losses.non_saturating.
        """
        super().__init__(game or NonSaturating(), pairs=True)

    def generator(
        self, fake_scores: tf.Tensor, real_scores: tf.Tensor | None = None, *, replica: ganlab.Replica, **_: Any
    ) -> tf.Tensor:
        """The squared distance, the same for every sample, `(n,)`."""
        fake, real = (tf.sort(replica.gather(scores)) for scores in (fake_scores, real_scores))
        return tf.fill(fake_scores.shape, tf.reduce_mean(tf.square(fake - real)))
