"""Classes told apart by angles between embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge, Gt, Le
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.losses.around_a_game import AroundAGame
from ganlab_builtin.losses.games import Hinge
from ganlab_builtin.losses.pairwise import EMBEDDING, rows

PROXY = "proxy"


class D2DCrossEntropy(AroundAGame):
    """A game of scores, and embeddings near their class's proxy and far from examples of other classes (ReACGAN).

    Kang, Shim, Cho and Park, "Rebooting ACGAN: auxiliary classifier GANs with stable training" (2021), equation 6, the
    data-to-data cross-entropy: with unit embeddings f_i and the unit proxy v of the example's class,
    `-log(exp(a_i) / (exp(a_i) + sum_j exp(b_ij)))`, where `a_i = min(0, f_i . v - positive_margin) / temperature`,
    `b_ij = max(0, f_i . f_j - negative_margin) / temperature`, and j runs over the examples of other classes in the
    global batch. The critic's part counts real examples, the generator's its samples with the labels asked for.

    The critic returns `embedding` and `proxy`, its trained vector of the row's class: architectures.mlp with
    labels = "proxy" and an embedding_dim.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": "The game's loss, plus the cross-entropy of real examples, plus the penalty.",
        "generator/loss": "The game's loss, plus the cross-entropy of samples.",
    }

    def __init__(
        self,
        *,
        game: ganlab.Loss | None = None,
        weight: Annotated[float, Ge(0)] = 1.0,
        temperature: Annotated[float, Gt(0)] = 0.5,
        positive_margin: Annotated[float, Ge(-1), Le(1)] = 0.98,
        negative_margin: Annotated[float, Ge(-1), Le(1)] = 0.02,
    ) -> None:
        """Chooses the game and the part of the classes in it.

        Args:
            game: The loss of the scores; None for losses.hinge, the paper's.
            weight: The factor of the cross-entropy.
            temperature: The divisor of cosines.
            positive_margin: The cosine with its proxy from which on an example is no longer pulled.
            negative_margin: The cosine with an example of another class up to which it is not pushed.
        """
        super().__init__(game or Hinge(), labels=True, outputs=(EMBEDDING, PROXY))
        self.weight, self.temperature = weight, temperature
        self.positive_margin, self.negative_margin = positive_margin, negative_margin

    def critic_term(
        self, batch: ganlab.Batch, replica: ganlab.Replica, networks: Mapping[str, ganlab.Network]
    ) -> tf.Tensor:
        """`weight` times the cross-entropy of real examples, `(n,)`."""
        return self.weight * self._entropy(batch.real_outputs, batch.labels, replica)

    def generator_term(
        self, batch: ganlab.Batch, replica: ganlab.Replica, networks: Mapping[str, ganlab.Network]
    ) -> tf.Tensor:
        """`weight` times the cross-entropy of samples, `(n,)`."""
        return self.weight * self._entropy(batch.fake_outputs, batch.labels, replica)

    def _entropy(self, outputs: Mapping[str, tf.Tensor], labels: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
        embedding, proxy = (tf.math.l2_normalize(rows(outputs[name]), axis=1) for name in (EMBEDDING, PROXY))
        cosines = tf.matmul(embedding, replica.gather(embedding), transpose_b=True)
        towards = tf.minimum(tf.reduce_sum(embedding * proxy, axis=1) - self.positive_margin, 0.0) / self.temperature
        away = tf.nn.relu(cosines - self.negative_margin) / self.temperature
        labels = tf.cast(labels, tf.int32)
        alike = tf.equal(labels[:, None], replica.gather(labels)[None])
        away = tf.where(alike, tf.constant(-1e30, away.dtype), away)
        return tf.reduce_logsumexp(tf.concat([towards[:, None], away], axis=1), axis=1) - towards
