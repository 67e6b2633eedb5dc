"""Losses that use the examples' classes, with a critic that returns `logits`, `(n, classes)`."""

from __future__ import annotations

from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.losses.games import NonSaturating

LOGITS = "logits"


class AuxiliaryClassifier(ganlab.Loss):
    """A game of scores, and a classifier that both networks want to be right.

    Odena, Olah and Shlens, "Conditional image synthesis with auxiliary classifier GANs" (2017), section 4: the critic
    maximizes L_S + L_C and the generator L_C - L_S, where L_C is the log-likelihood of the right class. The critic's
    part counts real examples and, with `on_samples`, the generator's too, as in the paper.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": "The game's loss, plus the classifier's cross-entropy in nats, plus the penalty.",
        "generator/loss": "The game's loss, plus the classifier's cross-entropy on samples, in nats.",
    }

    labels = True
    outputs = (LOGITS,)

    def __init__(
        self, *, game: ganlab.Loss | None = None, weight: Annotated[float, Ge(0)] = 1.0, on_samples: bool = True
    ) -> None:
        """Chooses the game and the classifier's part in it.

        Args:
            game: The loss of the scores, of each example alone; None for losses.non_saturating, the paper's.
            weight: The classifier's factor.
            on_samples: Whether the critic's classifier learns from samples too.
        """
        self.game, self.weight, self.on_samples = game or NonSaturating(), weight, on_samples
        if self.game.pairs:
            raise ganlab.ConfigError(
                "losses.auxiliary_classifier.game compares pairs of examples, which it cannot in here. Use "
                "losses.hinge, losses.non_saturating, losses.least_squares or losses.wasserstein."
            )

    def critic(
        self, real_scores: tf.Tensor, fake_scores: tf.Tensor, batch: ganlab.Batch, replica: ganlab.Replica
    ) -> tf.Tensor:
        """The game's loss, plus `weight` times the cross-entropy, `(n,)`."""
        logits = batch.real_outputs[LOGITS]
        classified = cross_entropy(logits, batch)
        correct = tf.equal(tf.argmax(logits, axis=1), tf.cast(batch.labels, tf.int64))
        replica.log("accuracy", tf.cast(correct, tf.float32))
        if self.on_samples:
            classified += cross_entropy(batch.fake_outputs[LOGITS], batch)
        return self.game.critic(real_scores, fake_scores) + self.weight * classified

    def generator(self, fake_scores: tf.Tensor, batch: ganlab.Batch) -> tf.Tensor:
        """Likewise, `(n,)`."""
        classified = cross_entropy(batch.fake_outputs[LOGITS], batch)
        return self.game.generator(fake_scores) + self.weight * classified


class MultiHinge(ganlab.Loss):
    """One margin for all classes, and a further class for what the generator makes.

    Kavalerov, Czaja and Chellappa, "cGANs with multi-hinge loss" (2021), equations 6 to 8: each example's own logit
    must exceed all others by one; the logit of the class "made" is minus the score.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": "2 where all logits are alike, 0 where each example's is ahead by one, plus the penalty.",
        "generator/loss": "1 where all logits are alike, 0 where the asked label's is ahead by one.",
    }

    labels = True
    outputs = (LOGITS,)

    def critic(self, real_scores: tf.Tensor, fake_scores: tf.Tensor, batch: ganlab.Batch) -> tf.Tensor:
        """`max(0, 1 - D_y + D_not_y)` of real examples plus the same of samples in their class, `(n,)`."""
        fake_class = tf.fill(tf.shape(fake_scores), tf.cast(batch.real_outputs[LOGITS].shape[1], tf.int64))
        real = _margin(batch.real_outputs[LOGITS], real_scores, tf.cast(batch.labels, tf.int64))
        return real + _margin(batch.fake_outputs[LOGITS], fake_scores, fake_class)

    def generator(self, fake_scores: tf.Tensor, batch: ganlab.Batch) -> tf.Tensor:
        """`max(0, 1 - D_y + D_not_y)` of samples, `(n,)`."""
        return _margin(batch.fake_outputs[LOGITS], fake_scores, tf.cast(batch.labels, tf.int64))


def cross_entropy(logits: tf.Tensor, batch: ganlab.Batch) -> tf.Tensor:
    """Minus the log-likelihood of each row's label, `(n,)`, in nats."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=batch.labels, logits=logits)


def _margin(logits: tf.Tensor, scores: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """How far the label's logit falls short of being ahead by one, `(n,)`; the last class has minus the score."""
    whole = tf.concat([logits, -scores[:, None]], axis=1)
    one_hot = tf.one_hot(labels, whole.shape[1], dtype=whole.dtype)
    others = tf.reduce_max(tf.where(one_hot > 0, tf.constant(-1e30, whole.dtype), whole), axis=1)
    return tf.nn.relu(1.0 - tf.reduce_sum(one_hot * whole, axis=1) + others)
