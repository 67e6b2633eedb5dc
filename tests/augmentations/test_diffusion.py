"""augmentations.diffusion and architectures.with_side: Wang et al. (2022) by numpy, and trained."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from ganlab_verify import lab
from known import Known
from making import component
from scipy import stats

import ganlab
from ganlab.engine import latents_of_samples, noise, read

N, MOST, STEPS = 20_000, 60, 12


def made(**arguments):
    return component("augmentations", "diffusion", **{"sigma": 0.5, "least": 5, "most": MOST, **arguments})


def state(steps=STEPS):
    return {"steps": tf.constant(float(steps))}


@pytest.mark.parametrize("distribution", ["priority", "uniform"])
def test_levels_have_the_distribution_of_section_3(distribution):
    """Half are 0, the others from 1 to T with weights t or 1: chi-squared at the level 1e-4."""
    _, side = made(distribution=distribution).apply(tf.zeros([N, 2]), state(), Known())
    t = np.rint(side["t"].numpy() * MOST).astype(int)
    np.testing.assert_allclose(side["t"], t / MOST, rtol=1e-6)
    weights = np.arange(1, STEPS + 1) if distribution == "priority" else np.ones(STEPS)
    expected = N * np.concatenate([[0.5], 0.5 * weights / weights.sum()])
    assert stats.chisquare(np.bincount(t, minlength=STEPS + 1), expected).pvalue > 1e-4


def test_examples_are_those_of_equation_1():
    known, x = Known(), np.random.default_rng(9).normal(size=(40, 2, 2, 1)).astype(np.float32)
    y, side = made().apply(tf.constant(x), state(), known)
    left = np.concatenate([[1.0], np.cumprod(1.0 - np.linspace(1e-4, 2e-2, STEPS))])
    a = left[np.rint(side["t"].numpy() * MOST).astype(int)][:, None, None, None]
    assert len(np.unique(a)) > 5
    np.testing.assert_allclose(y, np.sqrt(a) * x + np.sqrt(1 - a) * 0.5 * known.drawn[-1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("scores", "steps"), [([1.0, 2.0, -0.1, 3.0], 17.0), ([1.0, -1.0, -2.0, 3.0], 7.0)])
def test_the_most_steps_follow_the_signs(scores, steps):
    """Four images on each of two replicas are 8 of 88: a tenth of the way from 5 to 60."""
    known = Known(count=2)
    after = made(images=88.0, target=0.4).advance(state(), tf.constant(scores), known)
    np.testing.assert_allclose(after["steps"], steps, rtol=1e-6)
    assert known.logged == pytest.approx({"steps": steps, "sign": np.mean(np.sign(scores))})


@pytest.mark.parametrize(("name", "shape"), [("mlp", (2,)), ("dcgan", (8, 8, 1))])
def test_the_critic_takes_the_number_as_one_more_channel(cpus, name, shape):
    inner = component("architectures", name, **({"width": 8} if name == "mlp" else {"channels": 2}))
    keras.utils.set_random_seed(0)
    critic = component("architectures", "with_side", architecture=inner).critic(shape)
    keras.utils.set_random_seed(0)
    plain = inner.critic((*shape[:-1], shape[-1] + 1))
    plain.set_weights(critic.get_weights())
    x, t = np.random.default_rng(0).normal(size=(3, *shape)).astype(np.float32), np.float32([0.0, 0.5, 1.0])
    plane = np.broadcast_to(t.reshape(3, *[1] * len(shape)), (3, *shape[:-1], 1))
    np.testing.assert_allclose(critic([x, t]), plain(np.concatenate([x, plane], axis=-1)), rtol=1e-6)
    assert [each.name for each in critic.inputs] == ["sample", "t"]


def game(**arguments):
    inner = component("architectures", "mlp", width=16, depth=1, latent_dim=3, activation="tanh")
    return {
        "architecture": component("architectures", "with_side", architecture=inner),
        "augmentations": [made(images=200.0)],
        "constraints": [component("constraints", "gradient_penalty")],
        **arguments,
    }


@pytest.mark.slow
@pytest.mark.parametrize("given", [{"replicas": 2}, {"microbatches": 3}, {"jit": "on"}])
def test_every_way_of_training_gives_the_same(cpus, given):
    one = lab.Training(lab.experiment(**game())).train(3).still()
    other = lab.Training(lab.experiment(**game(), **given)).train(3).still()
    for name, value in one.values.items():
        np.testing.assert_allclose(other.values[name], value, rtol=2e-5, atol=2e-6, err_msg=name)


@pytest.mark.slow
def test_a_critic_that_is_told_the_level_teaches_the_grid(cpus):
    """Stated beforehand: at least 22 of 25 Gaussians have samples within three deviations of the diffused width."""
    steps, grid = 4000, component("datasets", "gaussian_grid")
    adam = component("optimizers", "adam", learning_rate=2e-4, beta_1=0.5)
    inner = component("architectures", "mlp", latent_dim=32, depth=2, width=128, activation="leaky_relu")
    architecture = component("architectures", "with_side", architecture=inner)
    training = lab.Training(
        lab.experiment(
            dataset=grid,
            architecture=architecture,
            loss=component("losses", "non_saturating"),
            augmentations=[made(most=500, sigma=0.5)],
            critic_optimizer=adam,
            generator_optimizer=adam,
            batch_size=128,
            steps=steps,
        )
    ).train(steps)
    generator = training.trainer.state.generator.network
    latents = latents_of_samples(architecture, 2500, 1)
    samples = generator(latents, read(generator.weights), {}, training=False)[0].numpy()
    apart = np.linalg.norm(samples[:, None] - np.asarray(grid.modes)[None], axis=2)
    assert len(np.unique(apart.argmin(axis=1)[apart.min(axis=1) < 0.2])) >= 22


def test_a_conditional_critic_takes_label_and_number(cpus):
    """The critic's loss of one update is that of the model called with example, label and level."""
    inner = component("architectures", "mlp", width=8, depth=1, latent_dim=3, activation="tanh", labels="projection")
    ring = component("datasets", "gaussian_ring")
    parts = {"architecture": component("architectures", "with_side", architecture=inner), "dataset": ring}
    training = lab.Training(lab.experiment(augmentations=[Level()], rates=(0.0, 0.0), **parts))
    state, numbers = training.trainer.state, tf.range(12, dtype=tf.int64)
    labels = tf.one_hot(ring.labels(numbers), ring.classes)
    t = noise.whole("uniform", (12,), seed=0, stream=noise.AUGMENTATIONS)
    z = noise.whole("normal", (12, 3), seed=0, stream=noise.FAKE_LATENT)
    fake = state.generator.network.model([z, labels])
    real_scores, fake_scores = (
        state.critic.network.model([x, labels, t]).numpy() for x in (ring.examples(numbers, 0), fake)
    )
    found = training.train(1).reduced()["critic/loss"]
    np.testing.assert_allclose(found, [np.mean(fake_scores) - np.mean(real_scores)], rtol=1e-5, atol=1e-6)


class Level(ganlab.Augmentation):
    """Changes nothing, and tells a number."""

    def apply(self, x, state, replica):
        return x, {"t": replica.uniform([x.shape[0]])}
