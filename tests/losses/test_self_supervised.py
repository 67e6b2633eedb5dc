"""losses.self_supervised and architectures.with_head: Chen et al. (2019) by numpy, on replicas, and trained."""

import numpy as np
import pytest
import tensorflow as tf
from alone import Alone
from ganlab_verify import lab
from making import component as made
from small import assert_same

import ganlab
from ganlab.engine import Draws, TrainingState, noise, read

ALPHA, BETA, ROWS = 0.3, 0.7, 5


def networks(**arguments):
    inner = made("architectures", "mlp", width=8, depth=1, latent_dim=3, activation="tanh", **arguments)
    return made("architectures", "with_head", architecture=inner)


def loss():
    return made("losses", "self_supervised", alpha=ALPHA, beta=BETA)


def experiment(replicas=0, **given):
    digits = made("datasets", "digits")
    return lab.experiment(replicas=replicas, dataset=digits, architecture=networks(), loss=loss(), **given)


def rotations(critic, images):
    """The mean of -log Q(R = r | x turned by r) over the four r of each image, by numpy, and the share recognized."""
    missed, right = [], []
    for r in range(4):
        turned = tf.constant(np.stack([np.rot90(image, r) for image in images]))
        logits = critic(turned, read(critic.weights), {})[0]["rotation"].numpy().astype(np.float64)
        missed.append(np.log(np.exp(logits).sum(axis=1)) - logits[:, r])
        right.append(logits.argmax(axis=1) == r)
    return np.mean(missed, axis=0), np.mean(right)


@pytest.mark.parametrize("side", ["critic", "generator"])
def test_losses_are_those_of_equations_2_and_3(cpus, side):
    state = TrainingState(experiment())
    functions = state.networks(Draws(0, ROWS, tf.constant(0), tf.constant(0)), state.values(), {}, noise.LAYERS)
    random = np.random.default_rng(0)
    x, real, fake = random.normal(size=(ROWS, 8, 8, 1)), random.normal(size=ROWS), random.normal(size=ROWS)
    x = tf.constant(x, tf.float32)
    outputs = functions["critic"].outputs(x)
    batch = ganlab.Batch(
        real=x if side == "critic" else None,
        fake=x if side == "generator" else tf.zeros_like(x),
        labels=None,
        size=ROWS,
        step=tf.constant(0),
        real_outputs=outputs if side == "critic" else {},
        fake_outputs=outputs if side == "generator" else {},
    )
    scores = [real, fake] if side == "critic" else [fake]
    replica = Alone()
    given = {"batch": batch, "replica": replica, "state": {}, "networks": functions}
    found = getattr(loss(), side)(*(tf.constant(each, tf.float32) for each in scores), **given)
    missed, right = rotations(state.critic.network, x.numpy())
    game = np.maximum(0, 1 - real) + np.maximum(0, 1 + fake) if side == "critic" else -fake
    np.testing.assert_allclose(found, game + (BETA if side == "critic" else ALPHA) * missed, rtol=1e-5)
    assert [values.mean() for values, _ in replica.logged.values()] == pytest.approx([right])


@pytest.mark.slow
@pytest.mark.parametrize("given", [{"replicas": 2}, {"microbatches": 3}])
def test_replicas_and_microbatches_train_the_same(cpus, given):
    one = lab.Training(experiment()).train(2).still()
    other = lab.Training(experiment(**given)).train(2).still()
    assert_same(one, other)


def test_the_head_is_linear_in_what_the_score_gets(cpus):
    critic = networks().critic((8, 8, 1))
    x = np.random.default_rng(0).normal(size=(3, 8, 8, 1)).astype(np.float32)
    kernel = critic.get_layer("hidden_1").get_weights()[0]
    features = np.tanh(x.reshape(3, -1) @ kernel)
    for name in ("score", "rotation"):
        expected = features @ critic.get_layer(name).get_weights()[0]
        np.testing.assert_allclose(critic(x)[name], expected, rtol=1e-5, atol=1e-6)


def test_a_second_head_needs_a_name_of_its_own(cpus):
    twice = made("architectures", "with_head", architecture=networks())
    with pytest.raises(ganlab.IncompatibleError, match="has an output 'rotation' already"):
        twice.critic((8, 8, 1))


def test_points_are_refused(cpus):
    points = made("datasets", "gaussian_ring")
    with pytest.raises(ganlab.IncompatibleError, match="turns square images"):
        lab.Training(lab.experiment(architecture=networks(), loss=loss(), dataset=points)).train(1)


@pytest.mark.slow
def test_both_networks_learn_what_is_up(cpus):
    """Five digits of ten look alike upside down, which would leave 75%; a head at chance is right in 25%."""
    adam = made("optimizers", "adam", learning_rate=2e-4, beta_1=0.0)
    experiment = lab.experiment(
        dataset=made("datasets", "digits"),
        architecture=made(
            "architectures", "with_head", architecture=made("architectures", "dcgan", channels=32, latent_dim=32)
        ),
        loss=made("losses", "self_supervised"),
        constraints=[made("constraints", "spectral_norm")],
        critic_optimizer=adam,
        generator_optimizer=adam,
        batch_size=64,
        steps=2000,
    )
    training = lab.Training(experiment).train(2000)
    reduced = training.reduced()
    assert np.mean(reduced["losses/self_supervised/accuracy"][-100:]) > 0.75
    assert np.mean(reduced["losses/self_supervised/sample_accuracy"][-100:]) > 0.70
