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

    @pytest.mark.parametrize("limit", [0.0, -1.0, float("nan")])
    def test_the_limit_is_positive(self, limit):
        with pytest.raises(ganlab.ConfigError, match=r"weight_clipping\.limit = .* above 0"):
            constraint("weight_clipping", limit=limit)


class TestGradientPenalty:
    def test_a_linear_critic_has_the_slope_of_its_weights(self):
        # w = (3, 4): slope 5 wherever it is taken; 10 * (5 - 1)^2 = 160.
        replica = Stub()
        weights = tf.constant([3.0, 4.0])
        data = batch(np.ones((6, 2)), np.zeros((6, 2)))
        penalty = constraint("gradient_penalty").penalty(lambda x: tf.linalg.matvec(x, weights), data, {}, replica)
        np.testing.assert_allclose(penalty, np.full(6, 160.0), rtol=1e-5)
        np.testing.assert_allclose(replica.logged["slope"][0], np.full(6, 5.0), rtol=1e-6)
        assert {name: reduce for name, (_, reduce) in replica.logged.items()} == {"slope": "mean"}

    @pytest.mark.parametrize(
        ("slope", "target", "expected"),
        [
            (0.5, 1.0, 2.5),  # 10 * (0.5 - 1)^2
            (3.0, 2.0, 10.0),
            (0.0, 1.0, 10.0),
        ],
    )
    def test_targets(self, slope, target, expected):
        penalty = constraint("gradient_penalty", target=target)
        value = penalty.penalty(lambda x: slope * x[:, 0], batch(np.ones((3, 2)), np.zeros((3, 2))), {}, Stub())
        np.testing.assert_allclose(value, np.full(3, expected), rtol=1e-4, atol=1e-6)

    def test_it_is_taken_between_real_and_fake(self):
        # critic(x) = |x|^2 / 2 has slope |x|; at 0.25 * (8, 0) + 0.75 * (0, 4) = (2, 3) that is sqrt(13).
        replica = Stub()
        data = batch(np.tile([8.0, 0.0], (2, 1)), np.tile([0.0, 4.0], (2, 1)))
        constraint("gradient_penalty").penalty(lambda x: tf.reduce_sum(x * x, axis=1) / 2, data, {}, replica)
        np.testing.assert_allclose(replica.logged["slope"][0], np.full(2, np.sqrt(13)), rtol=1e-6)

    def test_its_gradient_is_finite_where_the_critic_is_flat(self):
        weights = tf.Variable([0.0, 0.0])
        with tf.GradientTape() as tape:
            data = batch(np.ones((2, 2)), np.zeros((2, 2)))
            value = constraint("gradient_penalty").penalty(lambda x: tf.linalg.matvec(x, weights), data, {}, Stub())
        assert np.isfinite(tape.gradient(value, weights)).all()

    def test_each_example_of_an_update_has_a_point_of_its_own(self):
        # critic(x) = |x|^2 / 2 has slope |x|: 1, 2 and 3 at a quarter, half and three quarters of (4, 0).
        replica = Stub(draws=[0.25, 0.5, 0.75])
        data = batch(np.tile([4.0, 0.0], (3, 1)), np.zeros((3, 2)))
        constraint("gradient_penalty").penalty(lambda x: tf.reduce_sum(x * x, axis=1) / 2, data, {}, replica)
        np.testing.assert_allclose(replica.logged["slope"][0], [1.0, 2.0, 3.0], rtol=1e-6)

    @pytest.mark.parametrize("wrong", [{"weight": -1.0}, {"target": -0.5}, {"weight": float("nan")}], ids=str)
    def test_settings_out_of_range(self, wrong):
        with pytest.raises(ganlab.ConfigError, match=rf"gradient_penalty.{next(iter(wrong))} = .* at least 0"):
            constraint("gradient_penalty", **wrong)


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

    def test_power_iterations_are_at_least_one(self):
        with pytest.raises(ganlab.ConfigError, match="power_iterations = 0 must be a whole number of at least 1"):
            constraint("spectral_norm", power_iterations=0)

    def test_a_convolution_is_the_matrix_of_its_outputs(self):
        kernel = np.arange(24.0).reshape(2, 2, 3, 2)
        np.testing.assert_array_equal(as_matrix(tf.constant(kernel)), kernel.reshape(12, 2))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["weight_clipping", "gradient_penalty", "spectral_norm"])
def test_mixed_precision_trains_float32_weights(name):
    trainer = Trainer(experiment([constraint(name)], precision="mixed_bfloat16"))
    before = {n: v.numpy() for n, v in trainer.state.variables().items()}
    rows = trainer.train(3)

    assert np.isfinite(rows).all()
    assert {v.dtype for n, v in before.items() if "/weights/" in n} == {np.dtype(np.float32)}
    hidden = next(layer for layer in trainer.state.critic.network.model.layers if isinstance(layer, keras.layers.Dense))
    assert hidden.compute_dtype == "bfloat16"
    for key, variable in trainer.state.critic.weights.items():
        if "kernel" in key:
            assert not np.array_equal(variable.numpy(), before[f"critic/weights/{key}"])
