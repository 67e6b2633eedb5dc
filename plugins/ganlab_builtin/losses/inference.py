"""Games whose critic sees an example together with its latent vector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import ganlab
from ganlab.lazy import tensorflow as tf


class ALI(ganlab.Loss):
    """The critic tells an example with its inferred latent vector from a sample with the one that it was made from.

    Dumoulin et al., "Adversarially Learned Inference" (2017), equation 1 with the losses of algorithm 1: for `q`, the
    critic's probability of a pair `(x, z ~ q(z | x))`, and `p`, that of a pair `(G(z), z)`, the critic minimizes
    `-log q - log(1 - p)`, generator and encoder `-log(1 - q) - log p`. It needs a critic of `[x, z]` and a network
    "encoder" that returns `mean` and `log_deviation`, as architectures.ali has them.
    """

    pairs = True
    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": "2 log 2 = 1.386 where the critic cannot tell the two kinds of pairs apart, 0 if it always can.",
        "generator/loss": "2 log 2 = 1.386 where the critic cannot tell the two kinds of pairs apart; no upper bound.",
    }

    def scores(
        self, batch: ganlab.Batch, networks: Mapping[str, ganlab.Network], replica: ganlab.Replica
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """The critic's scores of both kinds of pairs."""
        code = networks["encoder"](batch.real)
        latent = code["mean"] + tf.exp(code["log_deviation"]) * replica.normal(code["mean"].shape)
        critic = networks["critic"]
        return critic([batch.real, latent]), critic([batch.fake, batch.latent])

    def critic(self, real_scores: tf.Tensor, fake_scores: tf.Tensor) -> tf.Tensor:
        """`softplus(-real) + softplus(fake)`, `(n,)`."""
        return tf.nn.softplus(-real_scores) + tf.nn.softplus(fake_scores)

    def generator(self, fake_scores: tf.Tensor, real_scores: tf.Tensor) -> tf.Tensor:
        """`softplus(-fake) + softplus(real)`, `(n,)`."""
        return tf.nn.softplus(-fake_scores) + tf.nn.softplus(real_scores)
