"""A game whose critic also tells how far an image was turned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.losses.around_a_game import AroundAGame
from ganlab_builtin.losses.games import Hinge

ROTATION = "rotation"


class SelfSupervised(AroundAGame):
    """A game of scores, and a head of the critic that both networks want to recognize rotations.

    Chen, Zhai, Ritter, Lucic and Houlsby, "Self-supervised GANs via auxiliary rotation loss" (2019), equations 2 and 3:
    for `Q`, the head's probability of the rotation r of 0, 90, 180 or 270 degrees, the generator minimizes
    `-V - alpha E log Q(R = r | G(z) turned by r)` and the critic `V - beta E log Q(R = r | x turned by r)`, the latter
    for real examples alone. The mean over r is taken over all four for each example, where the authors turn a quarter
    of the batch. It needs a critic of square images that returns `rotation`, `(n, 4)`: architectures.with_head.

    Logs the share of rotations that the head recognizes of real examples as `accuracy`, and of samples as
    `sample_accuracy`.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": "The game's loss, plus beta times the head's cross-entropy of real examples, plus the penalty.",
        "generator/loss": "The game's loss, plus alpha times the head's cross-entropy of samples, in nats.",
        "accuracy": "The share of four rotations of real examples that the critic's head recognizes; by chance 0.25.",
        "sample_accuracy": "The same of samples. Far below `accuracy`, samples lack what tells top from bottom.",
    }

    def __init__(
        self,
        *,
        game: ganlab.Loss | None = None,
        alpha: Annotated[float, Ge(0)] = 0.2,
        beta: Annotated[float, Ge(0)] = 1.0,
    ) -> None:
        """Chooses the game and the weights of the rotations.

        Args:
            game: The loss of the scores; None for losses.hinge, as in the paper's experiments.
            alpha: The factor of the generator's part.
            beta: The factor of the critic's part.
        """
        super().__init__(game or Hinge(), outputs=(ROTATION,))
        self.alpha, self.beta = alpha, beta

    def critic_term(
        self, batch: ganlab.Batch, replica: ganlab.Replica, networks: Mapping[str, ganlab.Network]
    ) -> tf.Tensor:
        """`beta` times the cross-entropy of rotations of real examples, `(n,)`."""
        missed, right = _rotations(batch.real, batch.real_outputs, networks)
        replica.log("accuracy", right)
        return self.beta * missed

    def generator_term(
        self, batch: ganlab.Batch, replica: ganlab.Replica, networks: Mapping[str, ganlab.Network]
    ) -> tf.Tensor:
        """`alpha` times the cross-entropy of rotations of samples, `(n,)`."""
        missed, right = _rotations(batch.fake, batch.fake_outputs, networks)
        replica.log("sample_accuracy", right)
        return self.alpha * missed


def _rotations(
    x: tf.Tensor, outputs: Mapping[str, tf.Tensor], networks: Mapping[str, ganlab.Network]
) -> tuple[tf.Tensor, tf.Tensor]:
    """The mean of `-log Q(R = r | x turned by r)` over the four r, `(n,)`, and whether Q is highest at r, `(4, n)`.

    `outputs` are the critic's of x as it is.
    """
    if len(x.shape) != 4 or x.shape[1] != x.shape[2]:
        raise ganlab.IncompatibleError(
            f"losses.self_supervised turns square images, and the examples have the shape {tuple(x.shape[1:])}. Choose "
            "another dataset or another loss."
        )
    transposed = tf.transpose(x, [0, 2, 1, 3])
    turned = [tf.reverse(transposed, [1]), tf.reverse(x, [1, 2]), tf.reverse(transposed, [2])]
    logits = tf.stack([outputs[ROTATION], *(networks["critic"].outputs(each)[ROTATION] for each in turned)])
    right = tf.broadcast_to(tf.range(4)[:, None], tf.shape(logits)[:2])
    missed = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=right, logits=logits)
    found = tf.equal(tf.argmax(logits, axis=2, output_type=tf.int32), right)
    return tf.reduce_mean(missed, axis=0), tf.cast(found, tf.float32)
