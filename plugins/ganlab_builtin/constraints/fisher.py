"""The second moment of scores held at one."""

from __future__ import annotations

import ganlab
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.mean_constraint import MeanConstraint


class Fisher(MeanConstraint):
    """Holds the second moment of the critic's scores at one: `E(f(x)^2) = 1` over real and fake examples alike.

    Mroueh and Sercu, "Fisher GAN" (2017), equation 4: the critic then finds a distance of means in units of their
    deviation. Use it with losses.wasserstein.

    Logs `mean`, that moment, and `multiplier`.
    """

    differentiates = False

    def values(self, critic: ganlab.Critic, batch: ganlab.Batch) -> tf.Tensor:
        """Half the squared scores of the real and the fake example of a row."""
        return 0.5 * (tf.square(critic(batch.real)) + tf.square(critic(batch.fake)))
