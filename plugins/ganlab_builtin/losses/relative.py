"""Relativistic losses: how much more real an example is than examples of the other kind."""

from __future__ import annotations

from typing import ClassVar

import ganlab
from ganlab.lazy import tensorflow as tf


class Relativistic(ganlab.Loss):
    """Each real example against one sample: who is more real.

    Jolicoeur-Martineau, "The relativistic discriminator: a key element missing from standard GAN" (2019), equations 9
    and 10 (RSGAN); with constraints.r1 and constraints.r2 the game of Huang, Gokaslan, Kuleshov and Tompkin, "The GAN
    is dead; long live the GAN! A modern baseline GAN" (2024), equation 2 (R3GAN). In a conditional experiment a pair
    has one label.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": (
            "log 2 = 0.693 where the critic scores the two of a pair alike, 0 where it is sure and right, in nats, "
            "plus the penalty."
        ),
        "generator/loss": "log 2 = 0.693 where the samples of pairs score like the real examples, in nats.",
    }

    pairs = True

    def critic(self, real_scores: tf.Tensor, fake_scores: tf.Tensor) -> tf.Tensor:
        """`softplus(fake - real)`, `(n,)`, in nats."""
        return tf.nn.softplus(fake_scores - real_scores)

    def generator(self, fake_scores: tf.Tensor, real_scores: tf.Tensor) -> tf.Tensor:
        """`softplus(real - fake)`, `(n,)`, in nats."""
        return tf.nn.softplus(real_scores - fake_scores)


class RelativisticAverage(ganlab.Loss):
    """Each example against the mean score of the other kind, over the global batch.

    Jolicoeur-Martineau (2019), equations 11 and 12 (RaSGAN): an example counts as real as far as its score is above
    that mean. Both kinds take part in both losses.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": "2 log 2 = 1.386 where the critic scores everything alike, in nats, plus the penalty.",
        "generator/loss": "2 log 2 = 1.386 where the critic scores everything alike, in nats.",
    }

    pairs = True

    def critic(self, real_scores: tf.Tensor, fake_scores: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
        """`softplus(mean(fake) - real) + softplus(fake - mean(real))`, `(n,)`, in nats."""
        real, fake = _mean(real_scores, replica), _mean(fake_scores, replica)
        return tf.nn.softplus(fake - real_scores) + tf.nn.softplus(fake_scores - real)

    def generator(self, fake_scores: tf.Tensor, real_scores: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
        """`softplus(mean(real) - fake) + softplus(real - mean(fake))`, `(n,)`, in nats."""
        return self.critic(fake_scores, real_scores, replica)


def _mean(scores: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
    return replica.mean(tf.reduce_mean(scores))
