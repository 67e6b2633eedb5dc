"""A game whose generator keeps a code in its samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.losses.around_a_game import AroundAGame
from ganlab_builtin.losses.games import NonSaturating

CODE, CATEGORY, CONTINUOUS = "code", "category", "continuous"


class Info(AroundAGame):
    """A game of scores, and a network Q that reads the code of a sample, as generator and Q both want.

    Chen, Duan, Houthooft, Schulman, Sutskever and Abbeel, "InfoGAN" (2016), equations 5 and 6: generator and Q minimize
    `V - lambda L_I` with `L_I = E log Q(c | G(z, c)) + H(c)`, a lower bound of the information that a sample has about
    its code. Q gives a category's probabilities, and the means of continuous numbers whose deviation is 1, as in the
    authors' code for digits. The first latent numbers are the code: the category as one and zeros, then the continuous
    ones. Q is the network "code", or outputs of the critic, which trains them too; either returns `category`, logits
    `(n, categories)`, and `continuous`, `(n, continuous)`, or one of them. architectures.infogan has both.

    Logs the category's part of L_I as `information`, in nats.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": "The game's loss, plus what Q misses where it is the critic's, plus the penalty.",
        "generator/loss": "The game's loss, plus what Q misses: cross-entropy in nats, half the squared distance.",
        "information": "At least how much samples tell about their category, in nats: at most the log of the number "
        "of categories; 0 where they tell nothing.",
    }

    def __init__(
        self,
        *,
        game: ganlab.Loss | None = None,
        weight: Annotated[float, Ge(0)] = 1.0,
        continuous_weight: Annotated[float, Ge(0)] = 0.1,
    ) -> None:
        """Chooses the game and the weights of the code.

        Args:
            game: The loss of the scores; None for losses.non_saturating.
            weight: Lambda of the category, 1 in the paper.
            continuous_weight: Lambda of the continuous numbers, smaller in the paper.
        """
        super().__init__(game or NonSaturating())
        self.weight, self.continuous_weight = weight, continuous_weight

    def critic_term(
        self, batch: ganlab.Batch, replica: ganlab.Replica, networks: Mapping[str, ganlab.Network]
    ) -> tf.Tensor | None:
        """Q's loss, `(n,)`, if Q is a head of the critic."""
        return None if CODE in networks else self._missed(batch.fake_outputs, batch.latent)[0]

    def generator_term(
        self, batch: ganlab.Batch, replica: ganlab.Replica, networks: Mapping[str, ganlab.Network]
    ) -> tf.Tensor:
        """Q's loss, `(n,)`: the generator is rewarded for codes that Q recovers."""
        read = networks[CODE](batch.fake) if CODE in networks else batch.fake_outputs
        missed, information = self._missed(read, batch.latent)
        if information is not None:
            replica.log("information", information)
        return missed

    def _missed(self, read: Mapping[str, tf.Tensor], latent: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor | None]:
        """`-lambda log Q(c | x)` but for constants, `(n,)`; and the category's part of L_I, if there is one."""
        if CATEGORY not in read and CONTINUOUS not in read:
            raise ganlab.IncompatibleError(
                f"losses.info finds no {CATEGORY!r} and no {CONTINUOUS!r} in what the critic or a network {CODE!r} "
                "returns. Use architectures.infogan, or one whose critic or network returns them."
            )
        missed, information, first = tf.zeros([latent.shape[0]]), None, 0
        if CATEGORY in read:
            first = read[CATEGORY].shape[1]
            wrong = tf.nn.softmax_cross_entropy_with_logits(labels=latent[:, :first], logits=read[CATEGORY])
            missed, information = missed + self.weight * wrong, tf.math.log(float(first)) - wrong
        if CONTINUOUS in read:
            mean = read[CONTINUOUS]
            distance = tf.reduce_sum(tf.square(latent[:, first : first + mean.shape[1]] - mean), axis=1)
            missed += self.continuous_weight * 0.5 * distance
        return missed, information
