"""Weight clipping, gradient penalty and spectral normalization, against numpy and by hand."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import ganlab
from ganlab.functional import as_matrix
from ganlab.training.graph.trainer import Trainer
from ganlab.training.graph.variables import read, values_of

pytestmark = pytest.mark.usefixtures("cpus")


def constraint(name, **arguments):
    return ganlab.component("constraints", name)(**arguments)


def experiment(constraints, **parts):
    adam = ganlab.component("optimizers", "adam")(learning_rate=1e-3)
    given = {
        "dataset": ganlab.component("datasets", "gaussian_ring")(),
        "architecture": ganlab.component("architectures", "mlp")(width=8, depth=2),
        "loss": ganlab.component("losses", "wasserstein")(),
        "strategy": ganlab.component("strategies", "mirrored")(virtual_replicas=2),
        "critic_optimizer": adam,
        "generator_optimizer": adam,
        "constraints": constraints,
        "batch_size": 8,
        "critic_steps": 1,
        "steps": 50,
        "jit": "off",
    }
    return ganlab.experiment(**{**given, **parts})


class Stub:
    """A replica that draws a given value, a quarter by default, and keeps what is logged."""

    def __init__(self, draws=0.25):
        self.draws, self.logged = draws, {}

    def uniform(self, shape):
        return tf.broadcast_to(tf.constant(self.draws), shape)

    def log(self, name, values, reduce="mean"):
        self.logged[name] = (np.asarray(values), reduce)


def batch(real, fake):
    real, fake = tf.constant(real, tf.float32), tf.constant(fake, tf.float32)
    return ganlab.Batch(real=real, fake=fake, labels=None, size=len(real), step=tf.constant(0, tf.int64))


class TestWeightClipping:
    def test_weights_are_within_the_limit_from_the_start_and_after_every_update(self):
        trainer = Trainer(experiment([constraint("weight_clipping", limit=0.02)]))
        for count in (0, 1, 5):
            if count:
                trainer.train(count)
            kernels = [v.numpy() for name, v in trainer.state.critic.weights.items() if "kernel" in name]
            assert max(np.abs(kernel).max() for kernel in kernels) == pytest.approx(0.02)
            assert max(np.abs(v.numpy()).max() for v in trainer.state.critic.weights.values()) <= np.float32(0.02)
        generator = [np.abs(v.numpy()).max() for v in trainer.state.generator.weights.values()]
        assert max(generator) > 0.02

    def test_by_hand(self):
        clipped = constraint("weight_clipping", limit=0.5).project({"w": tf.constant([-2.0, -0.25, 0.5, 0.75])})
        np.testing.assert_array_equal(clipped["w"], [-0.5, -0.25, 0.5, 0.5])


class TestSpectralNorm:
    @pytest.mark.parametrize("critic", ["mlp", "dcgan"])
    def test_effective_kernels_have_singular_value_one(self, critic):
        parts = {}
        if critic == "dcgan":
            parts = {
                "dataset": ganlab.component("datasets", "digits")(),
                "architecture": ganlab.component("architectures", "dcgan")(channels=4, latent_dim=4),
            }
        trainer = Trainer(experiment([constraint("spectral_norm")], **parts))
        state = trainer.state
        for count in (0, 30):
            if count:
                trainer.train(count)
            weights = read(state.critic.weights)
            effective = state.critic.stack.effective(values_of(state.critic.nest))
            kernels = {n: v.numpy() for n, v in effective.items() if len(v.shape) >= 2}
            assert len(kernels) == len(state.critic.states[0]) >= 2
            for name, kernel in kernels.items():
                largest = np.linalg.svd(kernel.reshape(-1, kernel.shape[-1]), compute_uv=False)[0]
                # Never below one: an estimate of a largest singular value comes from below.
                assert 1 - 1e-5 <= largest < 1 + 1e-3, name
            for name in weights.keys() - kernels.keys():
                np.testing.assert_array_equal(effective[name], weights[name])

    @staticmethod
    def prepared(shape, **arguments):
        norm = constraint("spectral_norm", **arguments)
        x = keras.Input(shape[:1])
        norm.prepare(keras.Model(x, keras.layers.Dense(shape[1], use_bias=False, name="layer")(x)))
        return norm

    def test_the_vectors_catch_up(self):
        # With the weights at rest, one iteration an update brings the estimate to the singular value of numpy's SVD.
        matrix = tf.constant(np.random.default_rng(0).normal(size=(7, 5)), tf.float32)
        norm = self.prepared((7, 5))
        state = norm.initial_state({"layer/kernel": matrix})
        for _ in range(30):
            state = norm.advance({"layer/kernel": matrix}, state, None, None)
        effective = norm.reparameterize({"layer/kernel": matrix}, state)["layer/kernel"]
        np.testing.assert_allclose(effective, matrix / np.linalg.svd(matrix, compute_uv=False)[0], rtol=1e-4, atol=1e-6)

    def test_the_gradient_is_that_of_the_normalized_kernel(self):
        # d/dW <G, W / s(W)> = G / s - <G, W> u v' / s^2 with the leading singular vectors u, v.
        random = np.random.default_rng(1)
        matrix, direction = (random.normal(size=(6, 4)).astype(np.float32) for _ in range(2))
        norm = self.prepared((6, 4), power_iterations=50)
        weights = {"layer/kernel": tf.constant(matrix)}
        state = norm.advance(weights, norm.initial_state(weights), None, None)
        with tf.GradientTape() as tape:
            tape.watch(weights["layer/kernel"])
            value = tf.reduce_sum(direction * norm.reparameterize(weights, state)["layer/kernel"])
        left, singular, right = np.linalg.svd(matrix)
        expected = (
            direction / singular[0] - np.sum(direction * matrix) * np.outer(left[:, 0], right[0]) / singular[0] ** 2
        )
        np.testing.assert_allclose(tape.gradient(value, weights["layer/kernel"]), expected, rtol=1e-3, atol=1e-4)

    def test_a_zero_kernel_stays_finite(self):
        norm = self.prepared((3, 2))
        weights = {"layer/kernel": tf.zeros([3, 2])}
        state = norm.advance(weights, norm.initial_state(weights), None, None)
        assert np.isfinite(norm.reparameterize(weights, state)["layer/kernel"]).all()

    def test_a_convolution_is_the_matrix_of_its_outputs(self):
        kernel = np.arange(24.0).reshape(2, 2, 3, 2)
        np.testing.assert_array_equal(as_matrix(tf.constant(kernel)), kernel.reshape(12, 2))
