"""A generator that learns nothing: samples of another dataset, for critics between two distributions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import keras
from ganlab.lazy import tensorflow as tf

if TYPE_CHECKING:
    import tensorflow

_BITS = 23  # of a number in float32 that are spread evenly


class FixedSamples(ganlab.Architecture):
    """Samples of a dataset in place of a generator, beside the critic of another architecture.

    The critic alone is trained, between the experiment's dataset and this one. The latent numbers choose the number
    of an example: of a synthetic dataset any of 2^46, so that hardly any comes twice; of a finite one each alike.
    """

    latent_dim = 2

    def __init__(
        self, *, dataset: ganlab.Dataset, critic: ganlab.Architecture, seed: Annotated[int, Ge(0)] = 1
    ) -> None:
        """Keeps the parts.

        Args:
            dataset: Whose examples the generator returns.
            critic: The architecture whose critic is trained.
            seed: The seed of a synthetic dataset's examples. Under another seed than the experiment's they are
                independent of the real ones.
        """
        self.dataset, self._critic, self._seed = dataset, critic, seed

    def generator(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """A model `(n, 2) -> (n, *sample_shape)`, float32, without weights."""
        shape = tuple(self.dataset.sample_shape)
        if tuple(sample_shape) != shape:
            raise ganlab.IncompatibleError(
                f"architectures.fixed_samples returns examples of shape {shape}, and the experiment's are of shape "
                f"{tuple(sample_shape)}. Give architectures.fixed_samples.dataset one of this shape."
            )
        size = self.dataset.size

        def drawn(latent: tensorflow.Tensor) -> Any:
            uniform = 0.5 * (1.0 + tf.math.erf(latent / math.sqrt(2.0)))  # the normal distribution's own CDF
            high, low = tf.unstack(tf.cast(tf.minimum(uniform, 1 - 2.0**-24) * 2.0**_BITS, tf.int64), axis=1)
            numbers = high * 2**_BITS + low
            return self.dataset.examples(numbers if size is None else numbers % size, self._seed)

        latent = keras.Input((self.latent_dim,), name="latent")
        fixed = keras.layers.Lambda(drawn, output_shape=shape, dtype="float32", name="fixed_samples")
        return keras.Model(latent, fixed(latent), name="generator")

    def critic(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """The other architecture's critic."""
        return self._critic.critic(sample_shape)

    def coupled(self, numbers: tensorflow.Tensor, seed: int) -> tensorflow.Tensor | None:
        """Examples of the same numbers and seed, so that datasets made from the same draws are paired draw by draw."""
        return self.dataset.examples(numbers, seed) if self.dataset.size is None else None
