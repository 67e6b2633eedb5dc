"""The parts of the kit's own experiment: small enough to train in a second, and independent of plugins."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf

from ganlab import (
    Architecture,
    Batch,
    Constraint,
    Critic,
    Dataset,
    Loss,
    Replica,
    layers,
)
from ganlab.functional import example_normal, slopes

# Three examples on each of four replicas, and latent vectors of three: not a multiple of the four numbers that are
# drawn at once, so that a slice of the noise that is off by a few is noticed.
BATCH = 12
LATENT = 3
# A critic's initial kernels are this many times the usual size: its slope is about 4, so that it can be lowered.
_STEEP = 3.0


class Points(Dataset):
    """Gaussians at the corners of a square that is off the origin, so that an unconstrained critic grows steep.

    Attributes:
        modes: The corners, `(4, 2)`.
        std: The standard deviation about each.
    """

    sample_shape: tuple[int, ...] = (2,)
    size = None
    modes = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.5], [2.0, 1.5]], np.float32)
    std = 0.05

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The examples with these numbers; the corners take turns."""
        return tf.gather(self.modes, numbers % 4) + self.std * example_normal(numbers, 2, seed)

    def exact_sample(self, n: int, seed: int) -> np.ndarray:
        """`n` fresh examples, `(n, 2)` float32."""
        return self.examples(tf.range(n, dtype=tf.int64), seed + 1).numpy()


class LabelledPoints(Points):
    """The same points, or examples of another shape; the corner is the class."""

    classes = 4

    def __init__(self, sample_shape: tuple[int, ...] = Points.sample_shape) -> None:
        self.sample_shape, self._plain = sample_shape, dataset(sample_shape)

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The examples with these numbers."""
        return self._plain.examples(numbers, seed)

    def labels(self, numbers: tf.Tensor) -> tf.Tensor:
        """The corners, `(n,)` int64."""
        return tf.cast(numbers % 4, tf.int64)


class Images(Dataset):
    """Noise in [-1, 1], brighter to the right; by default of 8 x 8 pixels."""

    sample_shape: tuple[int, ...] = (8, 8, 1)
    size = None

    def __init__(self, sample_shape: tuple[int, ...] = sample_shape) -> None:
        self.sample_shape = sample_shape

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The examples with these numbers."""
        width = self.sample_shape[1]
        pixels = tf.reshape(example_normal(numbers, math.prod(self.sample_shape), seed), [-1, *self.sample_shape])
        return tf.tanh(0.5 * pixels + tf.reshape(tf.linspace(-0.5, 1.0, width), [1, 1, width, 1]))


class Vectors(Points):
    """Points with Gaussian coordinates appended, or cut to the first coordinate."""

    def __init__(self, length: int) -> None:
        self.sample_shape = (length,)

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The examples with these numbers."""
        points = super().examples(numbers, seed)
        length = self.sample_shape[0]
        return tf.concat([points, example_normal(numbers, length, seed + 7)], axis=1)[:, :length]


class Given(Dataset):
    """A dataset with conditions and sources: two numbers, and an example of another number."""

    condition_shape = (2,)

    def __init__(self, plain: Dataset) -> None:
        self._plain, self.sample_shape, self.classes = plain, plain.sample_shape, plain.classes
        self.source_shape: tuple[int, ...] = plain.sample_shape

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The dataset's own."""
        return self._plain.examples(numbers, seed)

    def labels(self, numbers: tf.Tensor) -> tf.Tensor:
        """The dataset's own."""
        return self._plain.labels(numbers)

    def conditions(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """Standard normal numbers."""
        return example_normal(numbers, 2, seed, stream=5)

    def sources(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The examples a million further."""
        return self._plain.examples(numbers + 10**6, seed)


def dataset(sample_shape: tuple[int, ...]) -> Dataset:
    """Data of a shape: points, vectors, or images."""
    if len(sample_shape) > 1:
        return Images(sample_shape)
    return Points() if sample_shape == Points.sample_shape else Vectors(*sample_shape)


class Networks(Architecture):
    """A small generator, and a critic from a function of the sample shape."""

    def __init__(self, critic: Callable[[tuple[int, ...]], keras.Model], latent_dim: int = LATENT) -> None:
        self._critic, self.latent_dim = critic, latent_dim

    def generator(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """A dense generator of one hidden layer; images end in tanh."""
        z = keras.Input((self.latent_dim,))
        x = keras.layers.Dense(8, activation="tanh")(z)
        end = "tanh" if len(sample_shape) > 1 else None
        x = keras.layers.Dense(math.prod(sample_shape), activation=end, dtype="float32")(x)
        return keras.Model(z, keras.layers.Reshape(sample_shape, dtype="float32")(x))

    def critic(self, sample_shape: tuple[int, ...]) -> keras.Model:
        """The critic that the function makes."""
        return self._critic(sample_shape)


class LabelledNetworks(Architecture):
    """A small conditional pair; the critic returns `logits`, and further outputs of eight numbers by name."""

    conditional = True

    def __init__(self, outputs: Sequence[str], latent_dim: int = LATENT) -> None:
        self.latent_dim = latent_dim
        self._outputs = [name for name in outputs if name not in ("score", "logits")]

    def generator(self, sample_shape: tuple[int, ...], classes: int) -> keras.Model:
        """Two layers on the latent vector and the label."""
        z, y = keras.Input((self.latent_dim,)), keras.Input((classes,))
        x = keras.layers.Dense(8, activation="tanh")(keras.layers.Concatenate()([z, y]))
        x = keras.layers.Dense(math.prod(sample_shape))(x)
        return keras.Model([z, y], keras.layers.Reshape(sample_shape)(x))

    def critic(self, sample_shape: tuple[int, ...], classes: int) -> keras.Model:
        """Two layers, and one more for each output."""
        x, y = keras.Input(sample_shape), keras.Input((classes,))
        h = keras.layers.Dense(8, activation="tanh", kernel_initializer=_kernel())(keras.layers.Flatten()(x))
        score = keras.layers.Dense(1)(keras.layers.Concatenate()([h, y]))
        outputs = {"score": score, "logits": keras.layers.Dense(classes)(h)}
        return keras.Model([x, y], outputs | {name: keras.layers.Dense(8)(h) for name in self._outputs})


def _kernel() -> keras.initializers.Initializer:
    return keras.initializers.VarianceScaling(_STEEP**2, "fan_in", "untruncated_normal")


def critic(sample_shape: tuple[int, ...], *, dropout: float = 0.0) -> keras.Model:
    """A critic without kinks, which would magnify rounding: dense for points, convolutional for images."""
    x = inputs = keras.Input(sample_shape)
    for layer in _hidden(sample_shape):
        x = layer(x)
        if dropout:
            x = layers.Dropout(dropout)(x)
    if len(x.shape) > 2:
        x = keras.layers.Flatten()(x)
    return keras.Model(inputs, keras.layers.Dense(1, kernel_initializer=_kernel())(x))


def flat_critic(sample_shape: tuple[int, ...]) -> keras.Model:
    """A dense critic for samples of any shape."""
    inputs = keras.Input(sample_shape)
    x = keras.layers.Dense(4, activation="tanh")(keras.layers.Flatten()(inputs))
    return keras.Model(inputs, keras.layers.Dense(1)(x))


def noisy_critic(sample_shape: tuple[int, ...]) -> keras.Model:
    """`critic` with noise after every hidden layer, for constraints that need noise."""
    return critic(sample_shape, dropout=0.25)


def _hidden(sample_shape: tuple[int, ...]) -> list[keras.layers.Layer]:
    convolution, dense = keras.layers.Conv2D, keras.layers.Dense
    if len(sample_shape) > 1:
        return [
            convolution(3, 3, strides=2, padding="same", activation="tanh", kernel_initializer=_kernel()),
            convolution(4, 2, activation="tanh", kernel_initializer=_kernel()),
        ]
    return [dense(8, activation="tanh", kernel_initializer=_kernel())]


class Wasserstein(Loss):
    """`fake - real` for the critic, `-fake` for the generator."""

    def critic(self, real_scores: tf.Tensor, fake_scores: tf.Tensor) -> tf.Tensor:
        """The critic's loss."""
        return fake_scores - real_scores

    def generator(self, fake_scores: tf.Tensor) -> tf.Tensor:
        """The generator's loss."""
        return -fake_scores


class SlopePenalty(Constraint):
    """The square of the slope between real and fake, for training components of other kinds."""

    def penalty(self, critic: Critic, batch: Batch, state: Mapping[str, tf.Tensor], replica: Replica) -> tf.Tensor:
        """`slope^2 / 10` at one point for each example."""
        a = tf.reshape(replica.uniform([batch.real.shape[0]]), [-1] + [1] * (len(batch.real.shape) - 1))
        return 0.1 * tf.square(slopes(critic, a * batch.real + (1.0 - a) * batch.fake))


class Companion(Constraint):
    """Uses every method of the contract, mildly; other constraints are stacked with it."""

    def parameters(self, weights: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """One gain for each kernel."""
        return {f"gain of {name}": tf.constant(0.9) for name, w in weights.items() if len(w.shape) >= 2}

    def initial_state(self, weights: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """A mean of the data, and a count."""
        return {"mean": tf.zeros([]), "updates": tf.zeros([], tf.int32)}

    def advance(
        self,
        weights: Mapping[str, tf.Tensor],
        state: Mapping[str, tf.Tensor],
        batch: Batch,
        replica: Replica,
    ) -> dict[str, tf.Tensor]:
        """Tracks the mean over replicas."""
        mean = replica.mean(tf.reduce_mean(batch.real))
        return {"mean": 0.9 * state["mean"] + 0.1 * mean, "updates": state["updates"] + 1}

    def reparameterize(self, weights: Mapping[str, tf.Tensor], state: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Kernels times their gains."""
        return {name: w * state.get(f"gain of {name}", 1.0) for name, w in weights.items()}

    def transform(self, critic: Critic) -> Critic:
        """The scores, halved."""
        return lambda x: 0.5 * critic(x)

    def penalty(self, critic: Critic, batch: Batch, state: Mapping[str, tf.Tensor], replica: Replica) -> tf.Tensor:
        """The slopes near the fakes, squared."""
        slope = slopes(critic, batch.fake + 0.1 * replica.normal(batch.fake.shape))
        replica.log("slope", slope)
        return 0.01 * tf.square(slope) + 0.0 * state["mean"]

    def weight_penalty(self, weights: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """A little of the sum of squares."""
        return 1e-4 * sum(tf.reduce_sum(tf.square(w)) for w in weights.values())

    def project(self, weights: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Every weight within [-5, 5]."""
        return {name: tf.clip_by_value(w, -5.0, 5.0) for name, w in weights.items()}
