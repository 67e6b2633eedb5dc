"""The second moment of slopes held at one."""

from __future__ import annotations

import ganlab
from ganlab.functional import example_norm, input_gradient
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.mean_constraint import MeanConstraint


class Sobolev(MeanConstraint):
    """Holds the mean squared slope of the critic at one, over real and fake examples alike.

    Mroueh, Li, Sercu, Raj and Cheng, "Sobolev GAN" (2018), equation 10 and section 5: `E ||grad f(x)||^2 = 1` under the
    mixture of both distributions, by the augmented Lagrangian of Fisher GAN. Use it with losses.wasserstein.

    Logs `mean`, the mean squared slope, and `multiplier`.
    """

    def values(self, critic: ganlab.Critic, batch: ganlab.Batch) -> tf.Tensor:
        """Half the squared slopes at the real and at the fake example of a row."""
        slopes = [example_norm(input_gradient(critic, x)[0]) for x in (batch.real, batch.fake)]
        return 0.5 * sum(tf.square(slope) for slope in slopes)
