"""The cost of transport from latent vectors to samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf

if TYPE_CHECKING:
    import keras


class TransportCost(ganlab.Constraint):
    """Asks the generator to leave each latent vector where it is, as far as the critic lets it.

    Lin, Yang, Lin, Chen and Fan, "Adversarial flow models" (2025): `weight * ||G(z) - z||^2` per number of a sample,
    so that the generator's map becomes that of optimal transport. The authors lower the weight during training
    (ByteDance-Seed/Adversarial-Flow-Models 519601d, train_adversarial_flow_imagenet.py:582 and
    configs/train/afm/train_afm_1nfe.yaml:67), as `@schedules.cosine()` does. The latent vector, or with
    experiment.source the source, has as many numbers as a sample. For experiment.generator_constraints.

    Their gradient normalization, which divides the gradient of the game by samples by a moving average of its size, is
    losses.normalized_gradient; constraints.gradient_normalization is another.

    Logs `cost`, the mean of `||G(z) - z||^2`.
    """

    differentiates = False
    metric_help: ClassVar[dict[str, str]] = {
        "cost": "The mean squared distance of samples from their latent vectors, summed over the numbers of a sample.",
    }

    def __init__(self, *, weight: Annotated[float, Ge(0)] = 0.2) -> None:
        """Chooses the penalty.

        Args:
            weight: Its factor; the authors' 0.2, falling to 0.005.
        """
        self.weight = weight

    def prepare(self, generator: keras.Model) -> None:
        """Refuses samples that are not of the size of what they are made from."""
        self._size = math.prod(generator.output.shape[1:])
        sizes = [math.prod(x.shape[1:]) for x in generator.inputs]
        if self._size not in sizes:
            raise ganlab.IncompatibleError(
                f"constraints.transport_cost needs latent vectors of {self._size} numbers, as many as a sample has; "
                f"the generator {generator.name!r} takes {' and '.join(map(str, sizes))}. Set the architecture's "
                f"latent_dim to {self._size}."
            )

    def generator_penalty(
        self,
        generator: ganlab.Generator,
        critic: ganlab.Critic,
        batch: ganlab.Batch,
        state: Mapping[str, tf.Tensor],
        replica: ganlab.Replica,
    ) -> tf.Tensor:
        """The penalty of each sample."""
        fake, start = batch.fake, batch.latent
        if batch.source is not None and math.prod(batch.source.shape[1:]) == self._size:
            start = batch.source
        moved = tf.reshape(fake, [fake.shape[0], -1]) - tf.reshape(start, [fake.shape[0], -1])
        cost = tf.reduce_sum(tf.square(moved), axis=1)
        replica.log("cost", cost)
        return self.weight * cost / self._size
