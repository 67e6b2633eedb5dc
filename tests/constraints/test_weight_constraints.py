"""Constraints on weights, against numpy's singular values and by hand; their certificates against slopes."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from prepared import Alone, constraint, convolution, map_of, on_a_matrix, prepared, singular_values
from small import small

import ganlab
from ganlab.training.graph.sampling import Scorer
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus", "same_numbers")

RANDOM = np.random.default_rng(0)


class TestWeightClipping:
    def test_weights_are_within_the_limit_from_the_start_and_after_every_update(self):
        trainer = Trainer(small(constraints=[constraint("weight_clipping", limit=0.02)]))
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


class TestWeightNormalization:
    def test_it_starts_as_the_critic_was_built(self):
        norm, weights = on_a_matrix("weight_normalization", RANDOM.normal(size=(5, 3)))
        effective = norm.reparameterize(weights, norm.parameters(weights))
        np.testing.assert_allclose(effective["layer/kernel"], weights["layer/kernel"], rtol=1e-6)

    def test_columns_have_the_lengths_of_the_gains(self):
        norm, _, weights = prepared("weight_normalization", convolution(), shape=(5, 5, 2))
        effective = norm.reparameterize(weights, {"layer/kernel": tf.constant([1.0, -2.0, 0.5, 0.0])})
        columns = np.reshape(effective["layer/kernel"], (18, 4))
        np.testing.assert_allclose(np.linalg.norm(columns, axis=0), [1, 2, 0.5, 0], rtol=1e-6)
        cosines = np.sum(columns * np.reshape(weights["layer/kernel"], (18, 4)), axis=0)
        assert list(np.sign(cosines)) == [1, -1, 1, 0]

    def test_the_gradient_is_across_the_direction_and_the_gains_take_the_rest(self):
        # Salimans and Kingma (2016), equation 3: with h = <grad_w, v> / |v|, grad_g = h and
        # grad_v = g / |v| (grad_w - h v / |v|).
        v, upstream = RANDOM.normal(size=(4, 1)), RANDOM.normal(size=(4, 1))
        norm, weights = on_a_matrix("weight_normalization", v)
        gains = {"layer/kernel": tf.constant([2.5])}
        with tf.GradientTape() as tape:
            tape.watch([weights["layer/kernel"], gains["layer/kernel"]])
            y = tf.reduce_sum(tf.constant(upstream, tf.float32) * norm.reparameterize(weights, gains)["layer/kernel"])
        of_v, of_g = tape.gradient(y, [weights["layer/kernel"], gains["layer/kernel"]])
        length = np.linalg.norm(v)
        expected = np.sum(upstream * v) / length
        np.testing.assert_allclose(of_g, [expected], rtol=1e-5)
        np.testing.assert_allclose(of_v, 2.5 / length * (upstream - expected * v / length), rtol=1e-4, atol=1e-6)

    def test_without_trained_gains_every_length_is_one(self):
        norm, weights = on_a_matrix("weight_normalization", RANDOM.normal(size=(5, 3)), trained_gains=False)
        assert norm.parameters(weights) == {}
        effective = norm.reparameterize(weights, {})["layer/kernel"]
        np.testing.assert_allclose(np.linalg.norm(effective, axis=0), np.ones(3), rtol=1e-6)
        assert norm.lipschitz_bound({"layer/kernel": effective}) <= 3**0.5


class TestBjorck:
    @pytest.mark.parametrize("shape", [(8, 5), (5, 8), (6, 6), (7, 1), (1, 7)])
    @pytest.mark.parametrize("order", [1, 3])
    def test_a_kernel_becomes_the_orthonormal_matrix_nearest_to_it(self, shape, order):
        matrix = RANDOM.normal(size=shape)
        bjorck, weights = on_a_matrix("bjorck", matrix, iterations=30, order=order)
        left, _, right = np.linalg.svd(matrix, full_matrices=False)
        np.testing.assert_allclose(bjorck.reparameterize(weights, {})["layer/kernel"], left @ right, atol=1e-5)

    def test_an_iteration_by_hand(self):
        # diag(3, 4): divided by (3^4 + 4^4)^(1/4), then s -> s (1 + (1 - s^2) / 2), and (1 - s^2)^2 * 3 / 8 more.
        start = np.array([3.0, 4.0]) / 337**0.25
        rest = 1 - start**2
        for order, expected in ((1, start * (1 + rest / 2)), (2, start * (1 + rest / 2 + 3 / 8 * rest**2))):
            bjorck, weights = on_a_matrix("bjorck", np.diag([3.0, 4.0]), iterations=1, order=order)
            kernel = bjorck.reparameterize(weights, {})["layer/kernel"]
            np.testing.assert_allclose(kernel, np.diag(expected), rtol=1e-5, atol=1e-6)

    @pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
    def test_singular_values_rise_to_one_and_never_above(self, scale):
        matrix = scale * RANDOM.normal(size=(40, 30))
        before = np.zeros(30)
        for iterations in (1, 3, 10):
            bjorck, weights = on_a_matrix("bjorck", matrix, iterations=iterations)
            values = singular_values(bjorck.reparameterize(weights, {})["layer/kernel"])
            assert (values > before).all() or values.min() > 0.999
            assert values.max() <= 1 + 1e-5
            before = values
        assert values.max() > 0.999

    def test_the_bound_of_a_convolution_is_reached(self):
        # Patches of a constant image under a constant kernel: norm 1 / 3 a patch, each pixel in 9.
        layer, shape = keras.layers.Conv2D(1, 3, use_bias=False, name="layer"), (20, 20, 1)
        bjorck, _, _ = prepared("bjorck", layer, shape=shape)
        kernel = bjorck.reparameterize({"layer/kernel": tf.ones([3, 3, 1, 1])}, {})["layer/kernel"]
        assert 0.96 < singular_values(map_of(layer, [kernel], shape))[0] <= 1 + 1e-6

    @pytest.mark.slow
    def test_a_sorting_critic_is_1_lipschitz_by_construction_and_learns_to_be_as_steep(self):
        parts = {
            "architecture": ganlab.component("architectures", "mlp")(width=32, depth=3, activation="max_min"),
            "critic_optimizer": ganlab.component("optimizers", "adam")(learning_rate=1e-2),
            "generator_optimizer": ganlab.component("optimizers", "sgd")(learning_rate=1e-6),
        }
        trainer = Trainer(small(constraints=[constraint("bjorck")], batch_size=64, **parts))
        for count in (0, 200):
            if count:
                trainer.train(count)
            scorer = Scorer(trainer.state)
            (bound,) = scorer.bounds().values()
            slope = slopes(scorer, (2,))
            assert slope <= bound <= 1 + 1e-3
            assert bound > 0.99
        assert slope > 0.95


class TestSpectralProjection:
    def test_smaller_kernels_stay_and_larger_ones_get_the_limit(self):
        for limit, expected in ((10.0, 3.0), (2.0, 2.0)):
            projection, weights = on_a_matrix("spectral_projection", np.diag([3.0, 1.0]), limit=limit)
            kernel = projection.project(weights)["layer/kernel"]
            np.testing.assert_allclose(kernel, np.diag([expected, expected / 3]), rtol=1e-5)

    def test_projection_uses_the_norm_of_the_convolution(self):
        layer, shape = convolution(strides=2, padding="same"), (7, 7, 2)
        projection, _, weights = prepared("spectral_projection", layer, shape=shape, limit=0.5, power_iterations=300)
        kernel = projection.project(weights)["layer/kernel"]
        assert singular_values(map_of(layer, [kernel], shape))[0] == pytest.approx(0.5, rel=1e-3)
        projection, _, _ = prepared(
            "spectral_projection", convolution(), shape=shape, limit=0.5, power_iterations=300, operator="matrix"
        )
        kernel = projection.project(weights)["layer/kernel"]
        assert singular_values(np.reshape(kernel, (18, 4)))[0] == pytest.approx(0.5, rel=1e-3)

    def test_twenty_iterations_are_within_a_few_percent(self):
        for shape in ((64, 64), (200, 30), (512, 512)):
            projection, weights = on_a_matrix("spectral_projection", RANDOM.normal(size=shape))
            largest = singular_values(projection.project(weights)["layer/kernel"])[0]
            assert 1 <= largest < 1.05


class TestParseval:
    @pytest.mark.parametrize("shape", [(6, 3), (3, 6)])
    def test_a_step_moves_singular_values_and_nothing_else(self, shape):
        matrix = RANDOM.normal(size=shape)
        parseval, weights = on_a_matrix("parseval", matrix, beta=0.1)
        left, values, right = np.linalg.svd(matrix, full_matrices=False)
        expected = left @ np.diag(1.1 * values - 0.1 * values**3) @ right
        np.testing.assert_allclose(parseval.project(weights)["layer/kernel"], expected, rtol=1e-4, atol=1e-5)

    def test_convolutions_compute_with_the_kernel_over_the_root_of_the_overlap(self):
        parseval, _, weights = prepared("parseval", convolution(strides=2, padding="same"), shape=(7, 7, 2))
        effective = parseval.reparameterize(weights, {})["layer/kernel"]
        np.testing.assert_allclose(effective, weights["layer/kernel"] / 2, rtol=1e-6)

    def test_the_distance_that_is_logged_by_hand(self):
        # W'W - I = diag(8, -0.75): of the shorter side.
        replica = Alone()
        parseval, weights = on_a_matrix("parseval", [[3.0, 0.0, 0.0], [0.0, 0.5, 0.0]])
        assert parseval.advance(weights, {}, None, replica) == {}
        np.testing.assert_allclose(replica.logged["distance"][0], [np.hypot(8, 0.75)], rtol=1e-6)
        assert replica.logged["distance"][1] == "max"


class TestLayerNormClipping:
    def test_by_hand(self):
        for limit, expected in ((10.0, [3.0, 4.0]), (1.0, [0.6, 0.8])):
            clipping, weights = on_a_matrix("layer_norm_clipping", [[3.0], [4.0]], limit=limit)
            weights["layer/bias"] = tf.constant([7.0, 7.0])
            projected = clipping.project(weights)
            np.testing.assert_allclose(projected["layer/kernel"][:, 0], expected, rtol=1e-6)
            np.testing.assert_array_equal(projected["layer/bias"], [7, 7])


class TestPenalties:
    def test_spectral_regularization_is_half_the_squares_of_the_largest_singular_values(self):
        layers = [keras.layers.Dense(5, name="first"), keras.layers.Dense(4, name="second")]
        penalty, _, weights = prepared("spectral_regularization", *layers, shape=(6,), weight=0.5, power_iterations=500)
        kernels = [value for name, value in weights.items() if "kernel" in name]
        expected = 0.25 * sum(singular_values(kernel)[0] ** 2 for kernel in kernels)
        with tf.GradientTape() as tape:
            tape.watch(kernels)
            value = penalty.weight_penalty(weights)
        assert float(value) == pytest.approx(expected, rel=1e-4)
        for kernel, gradient in zip(kernels, tape.gradient(value, kernels), strict=True):
            left, values, right = np.linalg.svd(kernel)
            np.testing.assert_allclose(gradient, 0.5 * values[0] * np.outer(left[:, 0], right[0]), rtol=0.02, atol=0.01)

    @pytest.mark.slow
    def test_spectral_regularization_of_the_convolution_itself(self):
        layer, shape = convolution(strides=2, padding="same"), (7, 7, 2)
        penalty, _, weights = prepared(
            "spectral_regularization", layer, shape=shape, weight=2.0, operator="convolution", power_iterations=500
        )
        expected = singular_values(map_of(layer, [weights["layer/kernel"]], shape))[0] ** 2
        assert float(penalty.weight_penalty(weights)) == pytest.approx(expected, rel=1e-3)

    def test_orthogonal_regularization_by_hand(self):
        # W'W = [[5, 4], [4, 13]]: 2 * 16 off the diagonal, and 4^2 + 12^2 on it where lengths count.
        matrix = [[1.0, -2.0], [2.0, 3.0]]
        for off_diagonal, expected in ((True, 32.0), (False, 32.0 + 160.0)):
            penalty, weights = on_a_matrix("orthogonal_regularization", matrix, weight=0.5, off_diagonal=off_diagonal)
            assert float(penalty.weight_penalty(weights)) == pytest.approx(0.5 * expected, rel=1e-6)

    def test_l2_regularization_by_hand(self):
        penalty, weights = on_a_matrix("l2_regularization", [[1.0, -2.0], [2.0, 4.0]], weight=0.2)
        weights["layer/bias"] = tf.constant([100.0])
        assert float(penalty.weight_penalty(weights)) == pytest.approx(2.5, rel=1e-6)  # 0.1 * 25


def slopes(score, shape, n=1000):
    """The largest slope between pairs of points near and far."""
    x = RANDOM.normal(size=(n, *shape))
    step = RANDOM.normal(size=x.shape) * 10.0 ** RANDOM.uniform(-1, 1, size=(n, *[1] * len(shape)))
    moved = np.abs(score(x) - score(x + step))
    return (moved / np.linalg.norm(step.reshape(n, -1), axis=1)).max()


@pytest.mark.parametrize(
    "name", ["weight_clipping", "spectral_norm", "bjorck", "spectral_projection", "parseval", "layer_norm_clipping"]
)
def test_there_is_no_bound_without_a_certificate(name):
    layers = [keras.layers.Dense(4), keras.layers.Lambda(lambda x: x * x), keras.layers.Dense(1)]
    found, _, weights = prepared(name, *layers, shape=(3,))
    assert found.lipschitz_bound(weights) is None
