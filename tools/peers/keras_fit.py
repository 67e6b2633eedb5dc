"""WGAN-GP through `keras.Model.fit` with a train step of its own; see tf_loop.py for the networks.

    python tools/peers/keras_fit.py mlp

See serving.py for its options and answers.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import keras
import numpy as np
import tensorflow as tf

from peers import serving, tf_loop


class WassersteinGAN(keras.Model):
    """Generator and critic, trained one iteration per batch."""

    def __init__(self, model: tf_loop.Model) -> None:
        """Takes the networks."""
        super().__init__()
        self.generator, self.critic = model.generator, model.critic
        self._model = model
        self._optimizers = [keras.optimizers.Adam(1e-4, beta_1=0.5, beta_2=0.9) for _ in range(2)]

    def train_step(self, real: Any) -> dict[str, tf.Tensor]:
        """Five updates of the critic on one batch each, and one of the generator."""
        for k in range(tf_loop.CRITIC_STEPS):
            critic_loss = self._update_critic(real[k])
        with tf.GradientTape() as tape:
            fake = self.generator(tf.random.normal((self._model.batch, self._model.latent)), training=True)
            loss = -tf.reduce_mean(self.critic(fake, training=True))
        weights = self.generator.trainable_variables
        self._optimizers[1].apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"critic": critic_loss, "generator": loss}

    def _update_critic(self, real: tf.Tensor) -> tf.Tensor:
        model = self._model
        fake = self.generator(tf.random.normal((model.batch, model.latent)), training=True)
        mixing = tf.random.uniform((model.batch, *(1 for _ in model.shape)))
        with tf.GradientTape() as tape:
            loss = tf_loop.critic_loss(model, real, fake, mixing)
        weights = self.critic.trainable_variables
        self._optimizers[0].apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss


def trainer(asked: serving.Asked) -> serving.Train:
    """Trains the model for the requested iterations."""
    tf_loop.prepare(asked)
    model = tf_loop.MODELS[asked.kind]()
    gan = WassersteinGAN(model)
    gan.compile()
    table = np.random.default_rng(0).uniform(-1, 1, (4096, *model.shape)).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices(table).shuffle(4096).repeat().batch(model.batch, drop_remainder=True)
    data = data.batch(tf_loop.CRITIC_STEPS, drop_remainder=True).prefetch(4)
    return lambda count: gan.fit(data, steps_per_epoch=count, verbose=0)


if __name__ == "__main__":
    serving.serve(trainer)
