"""A generator that learns nothing: real examples plus noise, to see what a critic makes of a known difference."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

import ganlab
from ganlab.bounds import Ge, Le
from ganlab.lazy import keras
from ganlab.lazy import tensorflow as tf

if TYPE_CHECKING:
    import tensorflow


class DataPlusNoise(ganlab.Architecture):
    """A fixed generator beside the critic of another architecture.

    Figure 1a of Gulrajani et al., "Improved Training of Wasserstein GANs" (2017), shows critics trained this way: the
    generator's distribution is the data's plus Gaussian noise of unit variance. Only the critic is trained, to near
    its optimum, and its level lines show what functions a constraint allows.

    The generator holds `examples` of the dataset and picks one by the first of its latent numbers.
    """

    def __init__(
        self,
        *,
        dataset: ganlab.Dataset,
        critic: ganlab.Architecture,
        std: Annotated[float, Ge(0)] = 1.0,
        examples: Annotated[int, Ge(1), Le(10**6)] = 65_536,
        seed: Annotated[int, Ge(0)] = 0,
    ) -> None:
        """Keeps the parts.

        Args:
            dataset: The dataset that the noise is added to, usually the experiment's.
            critic: The architecture whose critic is trained.
            std: The noise's standard deviation, in units of the data; the paper's 1.
            examples: The number of examples to pick from; all of a smaller dataset.
            seed: Decides the examples of a synthetic dataset.
        """
        self.dataset, self._critic, self.std, self.examples, self.seed = dataset, critic, std, examples, seed
        self.latent_dim = 1 + math.prod(dataset.sample_shape)

    def generator(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """A model `(n, latent_dim) -> (n, *sample_shape)`, float32, without weights."""
        shape = tuple(self.dataset.sample_shape)
        if tuple(sample_shape) != shape:
            raise ganlab.IncompatibleError(
                f"architectures.data_plus_noise adds noise to examples of shape {shape}, and the experiment's are of "
                f"shape {tuple(sample_shape)}. Give architectures.data_plus_noise.dataset the experiment's dataset."
            )
        count = self.examples if self.dataset.size is None else min(self.examples, self.dataset.size)
        table = np.asarray(self.dataset.examples(tf.range(count, dtype=tf.int64), self.seed), np.float32)

        def pick(latent: tensorflow.Tensor) -> Any:
            uniform = 0.5 * (1.0 + tf.math.erf(latent[:, 0] / math.sqrt(2.0)))  # the normal distribution's own CDF
            chosen = tf.minimum(tf.cast(uniform * count, tf.int32), count - 1)
            return tf.gather(table, chosen) + self.std * tf.reshape(latent[:, 1:], [-1, *shape])

        latent = keras.Input((self.latent_dim,), name="latent")
        fixed = keras.layers.Lambda(pick, output_shape=shape, dtype="float32", name="data_plus_noise")
        return keras.Model(latent, fixed(latent), name="generator")

    def critic(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """The other architecture's critic."""
        return self._critic.critic(sample_shape)
