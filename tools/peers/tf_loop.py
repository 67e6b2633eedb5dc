"""WGAN-GP in TensorFlow by hand: the whole loop in one graph, data through `tf.data`, losses of the last iteration.

    python tools/peers/tf_loop.py mlp

See serving.py for its options and answers. This is what a careful user would write for one device, and nothing more: no
metrics of each step, no replicas, no resuming. tf_compiled.py has it compiled. The networks and settings are those of
Gulrajani et al., "Improved Training of Wasserstein GANs" (2017): the toy networks at a batch of 256, and the MNIST
networks with DIM = 64 at a batch of 64.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from peers import serving

CRITIC_STEPS = 5


@dataclass(frozen=True)
class Model:
    """Networks and their training settings.

    Attributes:
        generator: `(n, latent) -> (n, *shape)`.
        critic: `(n, *shape) -> (n, 1)`.
        shape: The shape of one example.
        latent: The length of the generator's input.
        batch: Examples in a batch.
        weight: The gradient penalty's factor.
    """

    generator: keras.Model
    critic: keras.Model
    shape: tuple[int, ...]
    latent: int
    batch: int
    weight: float


def mlp(*, batch: int = 256, width: int = 512, depth: int = 3) -> Model:
    """The paper's toy networks."""

    def network(outputs: int) -> keras.Model:
        hidden = [layers.Dense(width, activation="relu", kernel_initializer="he_uniform") for _ in range(depth)]
        return keras.Sequential([keras.Input((2,)), *hidden, layers.Dense(outputs), _single()])

    return Model(network(2), network(1), (2,), 2, batch, 0.1)


def dcgan(*, batch: int = 64, channels: int = 64) -> Model:
    """The paper's networks for MNIST."""
    generator = keras.Sequential(
        [
            keras.Input((128,)),
            layers.Dense(4 * 4 * 4 * channels, activation="relu"),
            layers.Reshape((4, 4, 4 * channels)),
            layers.Conv2DTranspose(2 * channels, 5, 2, "same", activation="relu"),
            layers.Cropping2D(((0, 1), (0, 1))),
            layers.Conv2DTranspose(channels, 5, 2, "same", activation="relu"),
            layers.Conv2DTranspose(1, 5, 2, "same", activation="tanh"),
            _single(),
        ]
    )
    blocks: list[keras.Layer] = []
    for width in (channels, 2 * channels, 4 * channels):
        blocks += [layers.Conv2D(width, 5, 2, "same"), layers.LeakyReLU(0.2)]
    critic = keras.Sequential([keras.Input((28, 28, 1)), *blocks, layers.Flatten(), layers.Dense(1), _single()])
    return Model(generator, critic, (28, 28, 1), 128, batch, 10.0)


def _single() -> keras.Layer:
    """Makes results float32, whatever the layers before compute in: losses are."""
    return layers.Activation("linear", dtype="float32")


MODELS = {"mlp": mlp, "dcgan": dcgan}


def critic_loss(model: Model, real: tf.Tensor, fake: tf.Tensor, mixing: tf.Tensor) -> tf.Tensor:
    """The critic's loss with the gradient penalty at `mixing * real + (1 - mixing) * fake`."""
    points = mixing * real + (1.0 - mixing) * fake
    with tf.GradientTape() as inner:
        inner.watch(points)
        scores = model.critic(points, training=True)
    axes = list(range(1, len(model.shape) + 1))
    slopes = tf.sqrt(tf.reduce_sum(tf.square(inner.gradient(scores, points)), axis=axes) + 1e-12)
    loss = tf.reduce_mean(model.critic(fake, training=True)) - tf.reduce_mean(model.critic(real, training=True))
    return loss + model.weight * tf.reduce_mean(tf.square(slopes - 1.0))


class Loop:
    """Trains a model: `loop(n)` runs n iterations in one call of a graph."""

    def __init__(self, model: Model, *, examples: int = 4096, compiled: bool = False) -> None:
        """Builds optimizers and input; `examples` random examples stand for the data.

        Args:
            model: What is trained.
            examples: The number of examples.
            compiled: Whether XLA compiles each update.
        """
        self._model = model
        self._critic_optimizer = keras.optimizers.Adam(1e-4, beta_1=0.5, beta_2=0.9)
        self._generator_optimizer = keras.optimizers.Adam(1e-4, beta_1=0.5, beta_2=0.9)
        self._critic_optimizer.build(model.critic.trainable_variables)
        self._generator_optimizer.build(model.generator.trainable_variables)
        table = np.random.default_rng(0).uniform(-1, 1, (examples, *model.shape)).astype(np.float32)
        batches = tf.data.Dataset.from_tensor_slices(table).shuffle(examples).repeat()
        batches = batches.batch(model.batch, drop_remainder=True).batch(CRITIC_STEPS, drop_remainder=True)
        self._batches = iter(batches.prefetch(4))
        self._update_critic, self._update_generator = self._critic, self._generator
        if compiled:
            self._update_critic = tf.function(self._critic, jit_compile=True)
            self._update_generator = tf.function(self._generator, jit_compile=True)
        self._train = tf.function(self._many)

    def __call__(self, count: int) -> tuple[float, float]:
        """Runs `count` iterations; returns the last losses of critic and generator."""
        critic, generator = self._train(self._batches, tf.constant(count))
        return float(critic), float(generator)

    def _many(self, batches: tf.data.Iterator, count: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        critic_loss = generator_loss = tf.constant(0.0)
        for _ in tf.range(count):
            real = next(batches)
            for k in range(CRITIC_STEPS):
                critic_loss = self._update_critic(real[k])
            generator_loss = self._update_generator()
        return critic_loss, generator_loss

    def _critic(self, real: tf.Tensor) -> tf.Tensor:
        model = self._model
        fake = model.generator(tf.random.normal((model.batch, model.latent)), training=True)
        mixing = tf.random.uniform((model.batch, *(1 for _ in model.shape)))
        with tf.GradientTape() as tape:
            loss = critic_loss(model, real, fake, mixing)
        weights = model.critic.trainable_variables
        self._critic_optimizer.apply(tape.gradient(loss, weights), weights)
        return loss

    def _generator(self) -> tf.Tensor:
        model = self._model
        weights = model.generator.trainable_variables
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([weight.value for weight in weights])
            fake = model.generator(tf.random.normal((model.batch, model.latent)), training=True)
            loss = -tf.reduce_mean(model.critic(fake, training=True))
        self._generator_optimizer.apply(tape.gradient(loss, weights), weights)
        return loss


def prepare(asked: serving.Asked) -> None:
    """Selects the device and the number format, for the whole process."""
    if asked.device == "gpu" and not tf.config.list_physical_devices("GPU"):
        serving.refuse("TensorFlow sees no GPU. Install the extra `gpu`, and a driver, or use --device cpu.")
    if asked.device == "cpu":
        tf.config.set_visible_devices([], "GPU")
    # Otherwise recent GPUs multiply float32 numbers as TensorFloat-32, which ganlab's float32 does not.
    tf.config.experimental.enable_tensor_float_32_execution(asked.precision != "float32")
    keras.config.set_dtype_policy("float32" if asked.precision == "tensorfloat32" else asked.precision)


def trainer(asked: serving.Asked) -> Loop:
    """Trains the model for the requested iterations."""
    prepare(asked)
    return Loop(MODELS[asked.kind]())


if __name__ == "__main__":
    serving.serve(trainer)
