"""Latent vectors that an architecture makes of random numbers: in training, for samples, in exports."""

import numpy as np
import pytest
import tensorflow as tf
from small import Layers, assert_same, small, trained

import ganlab
from ganlab.exporting import draw, export, interpolate
from ganlab.training.diagnostics.view import CriticFunctions, View
from ganlab.training.graph import noise, replica
from ganlab.training.graph.sampling import sampler
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")

FAR, WIDTH = 2.0, 0.3


class Mixture(Layers):
    """Two clusters, the first with a quarter of the latent vectors: a fixed mixture as in DeLiGAN."""

    def latent(self, uniform, normal):
        return tf.where(uniform[:, :1] < 0.25, -FAR, FAR) + WIDTH * normal


class Cube(Layers):
    def latent(self, uniform, normal):
        return 2.0 * uniform - 1.0


def numbers(n, *, stream=noise.LATENT, step=0, seed=0):
    """The uniform and the normal numbers that latent vectors are made of, in float64."""
    kinds = (("uniform", 1), ("normal", 0))
    drawn = (noise.whole(kind, (n, 3), seed=seed, stream=stream, step=step, number=i) for kind, i in kinds)
    return [x.numpy().astype(np.float64) for x in drawn]


def mixture(uniform, normal):
    return np.where(uniform[:, :1] < 0.25, -FAR, FAR) + WIDTH * normal


class Watched(ganlab.Loss):
    """Logs what the latent vectors are."""

    def critic(self, real_scores, fake_scores, batch, replica):
        replica.log("first", batch.latent[:, 0])
        return fake_scores - real_scores

    def generator(self, fake_scores, batch, replica):
        replica.log("squares", batch.latent**2)
        return -fake_scores


PARTS = {"architecture": Mixture(), "loss": Watched(), "critic_steps": 2}


@pytest.fixture(scope="module")
def one(cpus):
    return trained(0, count=6, **PARTS)


def test_updates_train_with_the_latents_of_the_architecture(one):
    found = one.reduced()
    for step in range(6):
        first = [mixture(*numbers(12, stream=noise.FAKE_LATENT, step=2 * step + k))[:, 0] for k in range(2)]
        np.testing.assert_allclose(found["losses/watched/first"][step], np.mean(first), rtol=1e-5, atol=1e-6)
        squares = mixture(*numbers(12, step=step)) ** 2
        np.testing.assert_allclose(found["losses/watched/squares"][step], squares.mean(), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("replicas", "changed"), [(2, {"microbatches": 2}), (0, {"jit": "step"})])
def test_they_are_the_same_however_they_are_computed(one, replicas, changed):
    assert_same(one, trained(replicas, count=6, **PARTS, **changed))


def linear(x):
    return tf.keras.layers.Dense(2)(x)


@pytest.mark.parametrize(
    ("made", "mean", "variance"),
    [
        (Mixture, FAR / 2, WIDTH**2 + FAR**2 - (FAR / 2) ** 2),  # 0.75 * 2 - 0.25 * 2 = 1
        (Cube, 0.0, 1 / 3),
        (Layers, 0.0, 1.0),
    ],
)
def test_the_mean_of_many_samples_is_the_priors(made, mean, variance):
    experiment = small(architecture=made(generator=linear))
    state = TrainingState(experiment)
    kernel, bias = (v.numpy().astype(np.float64) for v in state.generator.network.model.trainable_variables)
    count = 40_000
    samples = (draw := sampler(experiment, state))(count, seed=5)
    with pytest.raises(ganlab.ContractError, match="The generator takes no labels"):
        draw(2, 0, [0, 1])
    with pytest.raises(ganlab.ContractError, match="The generator is unconditional"):
        draw.from_latents(np.zeros((2, 3), np.float32), [0, 1])
    # Of the mixture all three numbers of a vector share their cluster.
    covariance = np.full((3, 3), variance - WIDTH**2 if made is Mixture else 0.0)
    np.fill_diagonal(covariance, variance)
    spread = np.sqrt(np.diag(kernel.T @ covariance @ kernel))
    assert (np.abs(samples.mean(axis=0) - (mean * kernel.sum(axis=0) + bias)) < 5 * spread / np.sqrt(count)).all()
    np.testing.assert_allclose(samples.std(axis=0), spread, rtol=0.03)


def test_only_an_architecture_with_one_has_uniform_numbers(monkeypatch):
    kinds = set()

    def recorded(spec, **given):
        kinds.update({spec.kind} if spec.stream in (noise.FAKE_LATENT, noise.LATENT) else ())
        return noise.draw(spec, **given)

    monkeypatch.setattr(replica, "draw", recorded)
    Trainer(small(architecture=Layers())).train(1)
    assert kinds == {"normal"}
    Trainer(small(architecture=Mixture())).train(1)
    assert kinds == {"normal", "uniform"}


def test_diagnostics_see_the_samples_that_train():
    experiment = small(2, architecture=Mixture(generator=linear), critic_steps=2)
    state = TrainingState(experiment)
    kernel, bias = (v.numpy() for v in state.generator.network.model.trainable_variables)
    view = View(experiment, state, CriticFunctions(experiment, state), 3)
    latent = mixture(*numbers(12, stream=noise.FAKE_LATENT, step=6))
    np.testing.assert_allclose(view.fake, latent @ kernel + bias, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(view.more(7)[1], mixture(*numbers(7)) @ kernel + bias, rtol=1e-5, atol=1e-5)


def test_samples_paths_and_exports_of_a_run_have_them(tmp_path):
    run = ganlab.train(small(architecture=Cube(), steps=2, seed=4), tmp_path / "run")
    uniform, _ = numbers(9, seed=8)
    drawn = draw(run, 9, seed=8)
    np.testing.assert_allclose(drawn.latents, 2 * uniform - 1, atol=1e-6)
    path = interpolate(run, 2, 3, seed=8).latents.reshape(2, 3, 3)
    np.testing.assert_allclose(path[:, 1], (drawn.latents[[0, 2]] + drawn.latents[[1, 3]]) / 2, atol=1e-6)
    with pytest.raises(ganlab.ConfigError, match=r"^truncation = 0\.5 cuts normal latent vectors, and "):
        draw(run, 9, truncation=0.5)
    export(run, tmp_path / "out")
    there = tf.saved_model.load(str(tmp_path / "out" / "generator"))
    np.testing.assert_array_equal(there.sample(9, 8)["latents"], drawn.latents)
    np.testing.assert_allclose(there.sample(9, 8)["samples"], drawn.samples, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda u, n: n[:, :2], r"latent returned the shape \(12, 2\), float32; it must be .* \(12, 3\)"),
        (lambda u, n: tf.cast(n, tf.float64), r"latent returned the shape \(12, 3\), float64"),
    ],
)
def test_latents_of_another_shape_are_refused(made, message):
    class Wrong(Layers):
        def latent(self, uniform, normal):
            return made(uniform, normal)

    with pytest.raises(ganlab.ContractError, match=message):
        Trainer(small(architecture=Wrong())).train(1)
