"""The generator learns from the best of its samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Gt, Le
from ganlab.functional import fixed
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.losses.around_a_game import AroundAGame
from ganlab_builtin.losses.games import NonSaturating
from ganlab_builtin.losses.pairwise import own_places


class TopK(AroundAGame):
    """A game whose generator is trained on the samples that the critic scores highest.

    Sinha, Zhao, Goyal, Raffel and Odena, "Top-k training of GANs: improving GAN performance by throwing away bad
    samples" (2020), equation 1: the generator's loss is the mean over the k best samples of the global batch. The paper
    lowers k from the whole batch to a half: `fraction = @schedules.linear()` from 1.0 to 0.5.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": "The game's loss, plus the penalty.",
        "generator/loss": "The game's loss, over the best samples alone.",
        "kept": "The fraction of samples that the generator is trained on.",
    }

    def __init__(self, *, game: ganlab.Loss | None = None, fraction: Annotated[float, Gt(0), Le(1)] = 0.5) -> None:
        """Chooses the game.

        Args:
            game: The loss; None for losses.non_saturating.
            fraction: k as a fraction of the global batch, rounded down, at least one sample. It may follow a schedule.
        """
        super().__init__(game or NonSaturating())
        self.fraction = fraction

    def generator(
        self,
        fake_scores: tf.Tensor,
        real_scores: tf.Tensor | None = None,
        *,
        batch: ganlab.Batch,
        replica: ganlab.Replica,
        state: Mapping[str, tf.Tensor],
        networks: Mapping[str, ganlab.Network] | None = None,
    ) -> tf.Tensor:
        """The game's loss times batch / k at the k best samples, 0 at the others, `(n,)`."""
        losses = super().generator(
            fake_scores, real_scores, batch=batch, replica=replica, state=state, networks=networks
        )
        own, size = fixed(fake_scores)[:, None], batch.size
        others = replica.gather(fixed(fake_scores))[None]
        # Of equal scores the earlier one in the batch is ahead: exactly k are kept.
        earlier = tf.range(size)[None] < own_places(losses.shape[0], replica)[:, None]
        ahead = tf.logical_or(others > own, tf.logical_and(tf.equal(others, own), earlier))
        rank = tf.reduce_sum(tf.cast(ahead, losses.dtype), axis=1)
        # Rounding must not take one away: 0.3 * 10 is 3.
        k = tf.maximum(tf.floor(tf.cast(self.fraction * tf.constant(float(size)), losses.dtype) + 1e-3), 1.0)
        is_kept = tf.cast(rank < k, losses.dtype)
        replica.log("kept", is_kept)
        return fixed(is_kept * size / k) * losses
