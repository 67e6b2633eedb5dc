"""The LeCam regularization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge, Lt
from ganlab.lazy import tensorflow as tf


class LeCam(ganlab.Constraint):
    """Draws the scores of each kind of examples toward the moving average of the other kind's.

    Tseng, Jiang, Liu, Yang and Yang, "Regularizing generative adversarial networks under limited data" (2021),
    equation 7: `(D(x) - a_fake)^2 + (D(G(z)) - a_real)^2`, where a_real and a_fake are moving averages of the mean
    scores of real examples and of samples. Both begin as the first update's means.

    The authors' code is `rectified` (google/lecam-gan at f9af948, biggan_cifar/losses.py:21): real scores below a_fake
    and samples' above a_real cost nothing. Its averages begin at 1000, and with the last means at `start`
    (third_party/utils.py:638 to 648).

    Logs `real_average` and `fake_average`.
    """

    differentiates = False
    metric_help: ClassVar[dict[str, str]] = {
        "real_average": "The moving average of real examples' scores, which those of samples are drawn to.",
        "fake_average": "The moving average of samples' scores, which those of real examples are drawn to.",
    }

    def __init__(
        self,
        *,
        weight: Annotated[float, Ge(0)] = 0.3,
        decay: Annotated[float, Ge(0), Lt(1)] = 0.99,
        start: Annotated[int, Ge(0)] = 0,
        rectified: bool = False,
    ) -> None:
        """Chooses the penalty.

        Args:
            weight: Its factor.
            decay: The decay of the averages in one critic update; the paper's 0.99.
            start: The critic update from which it counts; the averages are followed from the first.
            rectified: Whether only real scores above the samples' average cost, and samples' below that of real scores.
        """
        self.weight, self.decay, self.start, self.rectified = weight, decay, start, rectified

    def initial_state(self, weights: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The two averages."""
        return {"real": tf.zeros([]), "fake": tf.zeros([])}

    def advance(
        self,
        weights: Mapping[str, tf.Tensor],
        state: Mapping[str, tf.Tensor],
        batch: ganlab.Batch,
        replica: ganlab.Replica,
        critic: ganlab.Critic,
    ) -> dict[str, tf.Tensor]:
        """Moves the averages to the means of the global batch."""
        # In a fork or beside loaded weights the first update is not that of step 0.
        begins = tf.equal(state["real"], 0.0) & tf.equal(state["fake"], 0.0)
        decay = tf.where(begins, 0.0, self.decay)
        real, fake = (replica.mean(tf.reduce_mean(critic(x))) for x in (batch.real, batch.fake))
        averages = {
            "real": decay * state["real"] + (1.0 - decay) * real,
            "fake": decay * state["fake"] + (1.0 - decay) * fake,
        }
        replica.log("real_average", averages["real"])
        replica.log("fake_average", averages["fake"])
        return averages

    def penalty(
        self, critic: ganlab.Critic, batch: ganlab.Batch, state: Mapping[str, tf.Tensor], replica: ganlab.Replica
    ) -> tf.Tensor:
        """The penalty of the real and the fake example of each row."""
        above, below = critic(batch.real) - state["fake"], state["real"] - critic(batch.fake)
        if self.rectified:
            above, below = tf.nn.relu(above), tf.nn.relu(below)
        off = tf.square(above) + tf.square(below)
        return tf.where(batch.step >= self.start, self.weight * off, 0.0)
