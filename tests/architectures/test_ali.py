"""architectures.ali and losses.ali: pairs are scored as in the paper, and the encoder inverts the generator."""

import numpy as np
import pytest
import tensorflow as tf
from ganlab_verify import lab
from networks_by_hand import sigmoid
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

import ganlab
from ganlab.engine import Trainer, first_examples, noise, read

pytestmark = pytest.mark.usefixtures("cpus")


def networks(**sizes):
    return ganlab.component("architectures", "ali")(**{"latent_dim": 3, "width": 8, **sizes})


def loss():
    return ganlab.component("losses", "ali")()


def experiment(replicas=0, **given):
    return lab.experiment(replicas=replicas, architecture=networks(), loss=loss(), **given)


def test_the_first_losses_are_those_of_algorithm_1():
    """The logged losses of one update, from the networks' outputs by numpy."""
    trainer = Trainer(experiment())
    players = trainer.state.players

    def run(role, x):
        network = players[role].network
        return network(x, read(network.weights), {})[0]

    numbers = tf.range(12, dtype=tf.int64)
    real = trainer.experiment.dataset.examples(numbers, 0)
    z, u = (noise.whole("normal", (12, 3), seed=0, stream=stream) for stream in (noise.FAKE_LATENT, noise.CRITIC_LOSS))
    code = {name: value.numpy() for name, value in run("encoder", real).items()}
    latent = tf.constant(code["mean"] + np.exp(code["log_deviation"]) * u.numpy())
    q, p = (sigmoid(run("critic", pair).numpy()[:, 0]) for pair in ([real, latent], [run("generator", z), z]))
    expected = -np.log(q).mean() - np.log(1 - p).mean()
    rows = trainer.train(1)[0, 0]
    logged = dict(zip([metric.tag for metric in trainer.metrics], rows, strict=True))
    np.testing.assert_allclose(logged["critic/loss"], expected, rtol=1e-5)
    np.testing.assert_allclose(logged["critic/wasserstein"], np.mean(np.log(q / (1 - q)) - np.log(p / (1 - p))), 1e-4)


@pytest.mark.slow
def test_an_encoder_of_the_ring_inverts_the_generator():
    """Stated beforehand: examples come back within 0.6 on average, and samples lie within 0.4 (W1)."""
    adam = ganlab.component("optimizers", "adam")(learning_rate=5e-4, schedule="cosine")
    made = lab.experiment(
        dataset=ganlab.component("datasets", "gaussian_ring")(),
        architecture=ganlab.component("architectures", "ali")(width=128),
        loss=loss(),
        critic_optimizer=adam,
        generator_optimizer=adam,
        batch_size=128,
        steps=15_000,
    )
    trainer = Trainer(made)
    trainer.train(made.steps)
    real, encoder = first_examples(made.dataset, 1000, seed=1), trainer.state.players["encoder"].network
    codes = encoder(tf.constant(real), read(encoder.weights), {}, training=False)[0]["mean"]
    generator = trainer.state.generator.network
    again, samples = (
        generator(z, read(generator.weights), {}, training=False)[0].numpy()
        for z in (codes, noise.whole("normal", (1000, 2), seed=1, stream=noise.LATENT))
    )
    assert np.linalg.norm(again - real, axis=1).mean() < 0.6
    assert np.linalg.norm(np.roll(again, 1, axis=0) - real, axis=1).mean() > 1.5
    apart = cdist(samples, real)
    assert apart[linear_sum_assignment(apart)].mean() < 0.4  # W1 of a thousand of each
