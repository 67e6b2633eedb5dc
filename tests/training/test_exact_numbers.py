"""Numbers worked out by hand or by numpy, from the same draws."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from small import Layers, small, values

import ganlab
from ganlab.training.graph import noise
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")

RATE = 0.25


def linear(x):
    return keras.layers.Dense(1, name="score")(x)


def linear_generator(x):
    return keras.layers.Dense(2, name="sample")(x)


def test_one_update_of_a_linear_game_on_two_replicas():
    parts = {
        "architecture": Layers(generator=linear_generator, critic=linear),
        "critic_optimizer": keras.optimizers.SGD(RATE),
        "generator_optimizer": keras.optimizers.SGD(RATE),
        "ema_decay": 0.5,
    }
    trainer = Trainer(small(2, **parts))
    before = values(trainer.state)
    rows = trainer.train(1)
    after = values(trainer.state)

    # critic(x) = x w + b and generator(z) = z A + a, so that by hand
    #   w' = w - rate * (mean fake - mean real),  b' = b,
    #   A' = A + rate * mean(z)^T w'^T,           a' = a + rate * w'.
    weight = {
        name.split("/")[-1] + role: v
        for name, v in before.items()
        for role in ("critic", "generator")
        if name.startswith(f"{role}/weights")
    }
    w, b, a, offset = (weight[key] for key in ("kernelcritic", "biascritic", "kernelgenerator", "biasgenerator"))
    real = ganlab.component("datasets", "gaussian_ring")().examples(tf.range(12, dtype=tf.int64), 0).numpy()
    fake = noise.whole("normal", (12, 3), seed=0, stream=noise.FAKE_LATENT).numpy() @ a + offset
    latent = noise.whole("normal", (12, 3), seed=0, stream=noise.LATENT).numpy()
    moved = w - RATE * (fake.mean(axis=0) - real.mean(axis=0))[:, None]

    expected = {
        "critic/weights/score/kernel": moved,
        "critic/weights/score/bias": b,
        "generator/weights/sample/kernel": a + RATE * latent.mean(axis=0)[:, None] * moved.T,
        "generator/weights/sample/bias": offset + RATE * moved[:, 0],
    }
    for name, value in expected.items():
        np.testing.assert_allclose(after[name], value, rtol=1e-5, atol=1e-6, err_msg=name)

    # The logged losses are means over each replica's six examples.
    scores_real, scores_fake = (real @ w + b)[:, 0], (fake @ w + b)[:, 0]
    local = (scores_real - scores_fake).reshape(2, 6).mean(axis=1)
    tags = [metric.tag for metric in trainer.metrics]
    np.testing.assert_allclose(rows[0, :, tags.index("critic/wasserstein")], local, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(rows[0, :, tags.index("critic/loss")], -local, rtol=1e-5, atol=1e-6)
    generated = -((latent @ a + offset) @ moved + b)[:, 0].reshape(2, 6).mean(axis=1)
    np.testing.assert_allclose(rows[0, :, tags.index("generator/loss")], generated, rtol=1e-5, atol=1e-6)
