"""The Wasserstein distance without a Lipschitz constraint: the second potential follows from the first."""

from __future__ import annotations

from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge, Gt
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.losses.pairwise import distances, rows


class CTransform(ganlab.Loss):
    """Kantorovich's dual with the c-transform of the critic over the global batch.

    Mallasto, Montufar and Gerolin, "How well do WGANs estimate the Wasserstein metric?" (2019): the critic
    maximizes `mean phi(x_i) + mean phi^c(y_i)` over real examples x and samples y, where
    `phi^c(y) = min_j c(x_j, y) - phi(x_j)` and `c(x, y) = ||x - y||^power`. The pair keeps to the duality's constraint
    on the batch, so that no Lipschitz constraint is needed, and the objective is at most the batch's transport cost.
    With `epsilon` the minimum is soft, the paper's (c, epsilon)-transform:
    `-epsilon log mean_j exp((phi(x_j) - c(x_j, y)) / epsilon)`, of entropic transport.

    The critic never scores samples: its gradient reaches the generator by which real example is nearest.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": "Minus the estimate of the transport cost, W1 for power 1 and W2^2 for power 2.",
        "generator/loss": "The mean c-transform of samples. It has no zero of its own: the critic's scores have none.",
    }

    pairs = True

    def __init__(self, *, power: Annotated[float, Gt(0)] = 1.0, epsilon: Annotated[float, Ge(0)] = 0.0) -> None:
        """Chooses the cost.

        Args:
            power: The power of the Euclidean distance, 1 or 2 in the paper.
            epsilon: The entropic regularization, in units of the cost; 0 for the exact minimum.
        """
        self.power, self.epsilon = power, epsilon

    def critic(
        self, real_scores: tf.Tensor, fake_scores: tf.Tensor, batch: ganlab.Batch, replica: ganlab.Replica
    ) -> tf.Tensor:
        """`-(phi(real) + phi^c(fake))`, `(n,)`."""
        return -(real_scores + self._transformed(real_scores, batch, replica))

    def generator(
        self, fake_scores: tf.Tensor, real_scores: tf.Tensor, batch: ganlab.Batch, replica: ganlab.Replica
    ) -> tf.Tensor:
        """`phi^c(fake)`, `(n,)`."""
        return self._transformed(real_scores, batch, replica)

    def _transformed(self, real_scores: tf.Tensor, batch: ganlab.Batch, replica: ganlab.Replica) -> tf.Tensor:
        cost = tf.pow(distances(rows(batch.fake), replica.gather(rows(batch.real))), self.power)
        left = cost - replica.gather(real_scores)[None]
        if self.epsilon == 0:
            return tf.reduce_min(left, axis=1)
        size = tf.cast(left.shape[1], left.dtype)
        return -self.epsilon * (tf.reduce_logsumexp(-left / self.epsilon, axis=1) - tf.math.log(size))
