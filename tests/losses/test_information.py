"""losses.info and architectures.infogan: Chen et al. (2016) by numpy, on replicas, and trained."""

import math

import numpy as np
import pytest
import tensorflow as tf
from ganlab_verify import lab
from making import component as made
from small import assert_same

import ganlab
from ganlab.engine import Draws, noise, read
from ganlab.training.graph.latents import latents_of_samples, latents_of_update

CATEGORIES, CONTINUOUS, NOISE = 4, 2, 3
WEIGHT, OF_CONTINUOUS = 0.7, 0.2


def networks(shared=True, categories=CATEGORIES, continuous=CONTINUOUS):
    latent = categories + continuous + NOISE
    inner = made("architectures", "mlp", width=8, depth=1, latent_dim=latent, activation="tanh")
    code = {"categories": categories, "continuous": continuous, "shared": shared}
    return made("architectures", "infogan", architecture=inner, **code)


def loss():
    return made("losses", "info", weight=WEIGHT, continuous_weight=OF_CONTINUOUS)


def experiment(shared=True, **given):
    return lab.experiment(architecture=networks(shared), loss=loss(), **given)


def test_latent_vectors_have_the_distribution_of_section_5():
    random, n = np.random.default_rng(0), 20_000
    shape = n, CATEGORIES + CONTINUOUS + NOISE
    uniform, normal = random.random(shape).astype(np.float32), random.normal(size=shape).astype(np.float32)
    drawn = networks().latent(tf.constant(uniform), tf.constant(normal)).numpy()
    category, continuous, noise = np.split(drawn, [CATEGORIES, CATEGORIES + CONTINUOUS], axis=1)
    assert set(np.unique(category)) == {0.0, 1.0}
    np.testing.assert_array_equal(category.sum(axis=1), 1.0)
    np.testing.assert_allclose(category.mean(axis=0), 1 / CATEGORIES, atol=0.015)  # five deviations of 0.003
    np.testing.assert_allclose(continuous.var(axis=0), 1 / 3, atol=0.015)
    assert np.abs(continuous).max() <= 1
    np.testing.assert_array_equal(noise, normal[:, -NOISE:])
    np.testing.assert_allclose(np.corrcoef(drawn[:, CATEGORIES - 1 :].T) - np.eye(1 + CONTINUOUS + NOISE), 0, atol=0.04)


@pytest.mark.parametrize("shared", [True, False])
def test_losses_are_those_of_equations_5_and_6(cpus, shared):
    """The logged losses of one update, from the networks' outputs by numpy."""
    training = lab.Training(experiment(shared))
    trainer = training.trainer
    players = trainer.state.players

    def now(role):
        return {name: tf.constant(value.numpy()) for name, value in read(players[role].network.weights).items()}

    weights = {role: now(role) for role in players}

    def run(role, x):
        return players[role].network(x, weights[role], {})[0]

    def missed(z, sample):
        read_off = run("critic", sample) if shared else run("code", sample)
        logits, mean = (read_off[name].numpy().astype(np.float64) for name in ("category", "continuous"))
        wrong = np.log(np.exp(logits).sum(axis=1)) - (z[:, :CATEGORIES] * logits).sum(axis=1)
        apart = ((z[:, CATEGORIES : CATEGORIES + CONTINUOUS] - mean) ** 2).sum(axis=1) / 2
        return np.mean(WEIGHT * wrong + OF_CONTINUOUS * apart), np.mean(math.log(CATEGORIES) - wrong)

    def scores(x):
        y = run("critic", x)
        return (y["score"] if isinstance(y, dict) else y).numpy()[:, 0].astype(np.float64)

    def latents(stream):
        return latents_of_update(trainer.experiment.architecture, Draws(0, 12, tf.constant(0), tf.constant(0)), stream)

    real = trainer.experiment.dataset.examples(tf.range(12, dtype=tf.int64), 0)
    z = latents(noise.FAKE_LATENT)
    fake = run("generator", z)
    expected = np.mean(np.logaddexp(0, -scores(real)) + np.logaddexp(0, scores(fake)))
    expected += missed(z.numpy(), fake)[0] if shared else 0.0
    training.train(1)
    logged = training.reduced()
    np.testing.assert_allclose(logged["critic/loss"], [expected], rtol=1e-5)
    # The generator's loss is of the critic that this update left, and of the generator and of Q before it.
    weights["critic"] = now("critic")
    z = latents(noise.LATENT)
    fake = run("generator", z)
    missing, information = missed(z.numpy(), fake)
    expected = np.mean(np.logaddexp(0, -scores(fake))) + missing
    np.testing.assert_allclose(logged["generator/loss"], [expected], rtol=1e-5)
    np.testing.assert_allclose(logged["losses/info/information"], [information], rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("given", [{"replicas": 2}, {"microbatches": 3}])
@pytest.mark.parametrize("shared", [True, False])
def test_replicas_and_microbatches_train_the_same(cpus, shared, given):
    one = lab.Training(experiment(shared)).train(2).still()
    other = lab.Training(experiment(shared, **given)).train(2).still()
    assert_same(one, other)


def test_a_critic_without_the_code_is_refused(cpus):
    without = made("architectures", "mlp", width=8, depth=1)
    with pytest.raises(ganlab.IncompatibleError, match="finds no 'category' and no 'continuous'"):
        lab.Training(lab.experiment(architecture=without, loss=loss())).train(1)


def test_a_code_must_fit_into_the_latent_vectors():
    with pytest.raises(ganlab.ConfigError, match="a code of 0 numbers"):
        networks(categories=0, continuous=0)
    inner = made("architectures", "mlp", latent_dim=8)
    with pytest.raises(ganlab.ConfigError, match="categories = 9 and continuous = 2, in latent vectors of 8"):
        made("architectures", "infogan", architecture=inner, categories=9, continuous=2)


@pytest.mark.slow
def test_a_category_chooses_a_gaussian_of_the_ring(cpus):
    """Stated beforehand: a sample tells 1.9 nats of log 8 = 2.08; nine in ten of a category's lie nearest one mode."""
    steps, ring = 3000, made("datasets", "gaussian_ring")
    adam = made("optimizers", "adam", learning_rate=2e-4, beta_1=0.5)
    mlp = made("architectures", "mlp", latent_dim=32, depth=2, width=128, activation="leaky_relu")
    architecture = made("architectures", "infogan", architecture=mlp, categories=8, continuous=0)
    training = lab.Training(
        lab.experiment(
            dataset=ring,
            architecture=architecture,
            loss=made("losses", "info"),
            constraints=[made("constraints", "r1", gamma=0.1)],
            critic_optimizer=adam,
            generator_optimizer=adam,
            batch_size=64,
            steps=steps,
        )
    ).train(steps)
    assert np.mean(training.reduced()["losses/info/information"][-100:]) > 1.9
    generator = training.trainer.state.generator.network
    latents = latents_of_samples(architecture, 2000, 1)
    samples = generator(latents, read(generator.weights), {}, training=False)[0].numpy()
    nearest = np.argmin(np.linalg.norm(samples[:, None] - np.asarray(ring.modes)[None], axis=2), axis=1)
    counts = np.zeros((8, 8))
    np.add.at(counts, (latents.numpy()[:, :8].argmax(axis=1), nearest), 1)
    assert counts.max(axis=1).sum() / 2000 > 0.9
