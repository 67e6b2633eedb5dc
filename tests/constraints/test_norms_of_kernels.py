"""Constraints on singular values and sums of kernels, against numpy in float64; certificates against explicit maps."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from prepared import map_of, on_a_matrix, prepared

pytestmark = pytest.mark.usefixtures("cpus")

LAYERS = {
    "dense": lambda: keras.layers.Dense(4, use_bias=False),
    "same": lambda: keras.layers.Conv2D(4, 3, padding="same", use_bias=False),
    "valid": lambda: keras.layers.Conv2D(4, 3, strides=2, use_bias=False),
}
SHAPE = (7, 5, 3)


def chain(name, *layers, shape=SHAPE, **arguments):
    return prepared(name, *layers, shape=shape, **arguments)


def only(weights):
    (weight,) = weights.values()
    return np.asarray(weight, np.float64)


def svd(matrix):
    return np.linalg.svd(np.asarray(matrix, np.float64), full_matrices=False)


def settled(found, weights, updates=10):
    """The effective weights after the projections, or after enough updates of the state to settle it."""
    state = found.initial_state(weights)
    for _ in range(updates):
        weights = found.project(weights)
        state = found.advance(weights, state, None, None)
    return found.reparameterize(weights, state)


@pytest.mark.parametrize("layer", ["same", "valid"])
@pytest.mark.parametrize(
    "name",
    ["product_normalization", "stable_rank", "bidirectional_spectral_norm", "spectral_soft_cap", "infinity_norm"],
)
def test_certificates_are_never_below_the_norm(name, layer):
    found, model, weights = chain(name, LAYERS[layer]())
    effective = settled(found, weights, updates=2)
    largest = svd(map_of(model, effective.values(), SHAPE))[1][0]
    assert 0.2 < largest <= found.lipschitz_bound(effective) <= 1.02 * largest + 1e-6


class TestProductNormalization:
    def layers(self):
        return LAYERS["same"](), LAYERS["valid"](), keras.layers.Flatten(), LAYERS["dense"]()

    @pytest.mark.parametrize("operator", ["convolution", "matrix"])
    def test_only_the_last_kernel_changes_and_the_chain_is_1_lipschitz(self, operator):
        found, model, weights = chain("product_normalization", *self.layers(), operator=operator)
        effective = found.reparameterize(weights, {})
        *first, last = weights
        assert all(effective[name] is weights[name] for name in first)
        ratio = np.asarray(effective[last] / weights[last])
        np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-5)
        assert 0 < svd(map_of(model, effective.values(), SHAPE))[1][0] <= found.lipschitz_bound(effective) <= 1.01

    def test_the_product_is_that_of_numpys_norms(self):
        layers = [keras.layers.Dense(units, use_bias=False) for units in (6, 5, 1)]
        found, _, weights = chain("product_normalization", *layers, shape=(4,), iterations=9)
        last = list(weights)[-1]
        expected = only({last: weights[last]}) / math.prod(svd(weight)[1][0] for weight in weights.values())
        np.testing.assert_allclose(found.reparameterize(weights, {})[last], expected, rtol=2e-3)

    def test_the_gradient_reaches_every_kernel(self):
        # By differences along a random direction in all kernels at once.
        layers = [keras.layers.Dense(units, use_bias=False) for units in (6, 5, 2)]
        found, _, weights = chain("product_normalization", *layers, shape=(4,))
        random = np.random.default_rng(1)
        directions = {name: tf.constant(random.normal(size=w.shape), tf.float32) for name, w in weights.items()}
        last = list(weights)[-1]

        def value(step):
            moved = {name: weight + step * directions[name] for name, weight in weights.items()}
            return tf.reduce_sum(found.reparameterize(moved, {})[last] * directions[last])

        at = tf.constant(0.0)
        with tf.GradientTape() as tape:
            tape.watch(at)
            here = value(at)
        expected = (float(value(1e-2)) - float(value(-1e-2))) / 2e-2
        assert float(tape.gradient(here, at)) == pytest.approx(expected, rel=2e-3)


class TestStableRank:
    @pytest.mark.parametrize("shape", [(7, 5), (5, 7)])
    def test_the_rest_is_scaled_down_to_the_stable_rank(self, shape):
        left, values, right = svd(np.random.default_rng(3).normal(size=shape))
        values[0] = 2 * values[1]  # well apart, so that power iteration finds it
        found, weights = on_a_matrix("stable_rank", left @ np.diag(values) @ right, rank=0.25)
        rest = values[1:] / values[0]
        gamma = math.sqrt((0.25 * 5 - 1) / (rest**2).sum())
        assert gamma < 1
        effective = only(settled(found, weights))
        np.testing.assert_allclose(effective, left @ np.diag([1, *(gamma * rest)]) @ right, atol=1e-5)
        assert (svd(effective)[1] ** 2).sum() == pytest.approx(1.25, rel=1e-4)

    def test_a_kernel_below_the_stable_rank_is_only_normalized(self):
        matrix = np.diag([4.0, 1.0, 0.5])
        found, weights = on_a_matrix("stable_rank", matrix, rank=0.5)
        np.testing.assert_allclose(only(settled(found, weights)), matrix / 4, atol=1e-5)

    @pytest.mark.parametrize("second", [[1.0], [1.0, -1.0]])
    def test_a_kernel_of_rank_one_has_finite_gradients(self, second):
        found, weights = on_a_matrix("stable_rank", np.outer([1.0, 2.0, 3.0], second))
        (key,) = weights
        state = found.initial_state(weights)
        with tf.GradientTape() as tape:
            tape.watch(weights[key])
            y = tf.reduce_sum(found.reparameterize(weights, state)[key])
        assert np.isfinite(tape.gradient(y, weights[key])).all()


class TestBidirectionalSpectralNorm:
    def test_it_divides_by_the_mean_of_both_norms(self):
        found, _, weights = chain("bidirectional_spectral_norm", LAYERS["same"](), scale=1.6)
        kernel = only(weights)
        outputs = svd(kernel.reshape(-1, 4))[1][0]
        inputs = svd(kernel.transpose(0, 1, 3, 2).reshape(-1, 3))[1][0]
        assert outputs != pytest.approx(inputs, rel=0.01)
        np.testing.assert_allclose(only(settled(found, weights)), kernel * 3.2 / (outputs + inputs), rtol=1e-4)

    def test_it_is_spectral_normalization_for_dense_layers(self):
        matrix = np.random.default_rng(4).normal(size=(6, 4))
        found, weights = on_a_matrix("bidirectional_spectral_norm", matrix)
        np.testing.assert_allclose(only(settled(found, weights)), matrix / svd(matrix)[1][0], rtol=1e-4)


class TestSpectralSoftCap:
    @pytest.mark.parametrize("shape", [(6, 4), (4, 6)])
    @pytest.mark.parametrize(("limit", "step"), [(1.0, 0.01), (0.5, 0.2)])
    def test_an_update_above_the_limit_comes_back_to_it(self, shape, limit, step):
        left, _, right = svd(np.random.default_rng(5).normal(size=shape))
        before = limit * np.array([1 + step, 1.0, 0.5, 0.1])
        found, weights = on_a_matrix("spectral_soft_cap", left @ np.diag(before) @ right, limit=limit, step=step)
        capped = only(found.project(weights))
        after = svd(capped)[1]
        assert after[0] == pytest.approx(limit, rel=1e-5)
        assert (after < before).all()
        np.testing.assert_allclose(after[2:], before[2:], rtol=5 * step)
        np.testing.assert_allclose(capped, left @ np.diag(after) @ right, atol=1e-5)

    def test_one_update_by_hand(self):
        # With the strength a: s <- s - a s^3, then s <- s + a s^3.
        found, weights = on_a_matrix("spectral_soft_cap", np.diag([1.1, 0.7]), step=0.1)
        from ganlab_builtin.constraints.spectral_soft_cap import strength

        first = np.array([1.1, 0.7]) - strength(0.1) * np.array([1.1, 0.7]) ** 3
        np.testing.assert_allclose(only(found.project(weights)), np.diag(first + strength(0.1) * first**3), rtol=1e-5)

    @pytest.mark.parametrize("scale", [1.0, 1e3])
    def test_any_start_comes_down_to_the_limit(self, scale):
        found, weights = on_a_matrix(
            "spectral_soft_cap", scale * np.random.default_rng(6).normal(size=(8, 8)), step=0.05
        )
        largest = [svd(only(weights))[1][0]]
        for _ in range(200):
            weights = found.project(weights)
            largest.append(svd(only(weights))[1][0])
        assert (np.diff(largest) < 0).all()
        assert 0.3 < largest[-1] < 1


def nearest_in_ball(point):
    """The nearest point whose absolute values sum to one, by bisection for the threshold."""
    if np.abs(point).sum() <= 1:
        return point
    low, high = 0.0, np.abs(point).max()
    for _ in range(100):
        middle = (low + high) / 2
        inside = np.maximum(np.abs(point) - middle, 0).sum() <= 1
        low, high = (low, middle) if inside else (middle, high)
    return np.sign(point) * np.maximum(np.abs(point) - high, 0)


class TestInfinityNorm:
    def test_every_unit_gets_the_nearest_weights_in_the_ball(self):
        matrix = np.random.default_rng(7).normal(size=(9, 5)) * [0.05, 0.3, 1.0, 1.0, 10.0]
        found, weights = on_a_matrix("infinity_norm", matrix)
        expected = np.stack([nearest_in_ball(column) for column in matrix.T], axis=1)
        np.testing.assert_allclose(only(found.project(weights)), expected, atol=1e-6)

    @pytest.mark.parametrize(
        "layer",
        [
            lambda: keras.layers.Conv2D(4, 3, padding="same", use_bias=False),
            lambda: keras.layers.Conv2D(6, 3, strides=2, groups=3, use_bias=False),
            lambda: keras.layers.DepthwiseConv2D(3, depth_multiplier=2, use_bias=False),
            lambda: keras.layers.Conv2DTranspose(4, 3, 2, use_bias=False),
        ],
    )
    def test_no_layer_stretches_distances_in_the_maximum_norm(self, layer):
        found, model, weights = chain("infinity_norm", layer(), limit=0.5)
        rows = np.abs(map_of(model, found.project(weights).values(), SHAPE)).sum(axis=1)
        assert 0.2 < rows.max() <= 0.5 + 1e-6
        if not isinstance(model.layers[1], keras.layers.Conv2DTranspose):
            assert rows.max() == pytest.approx(0.5, rel=1e-5)

    def test_a_critic_is_1_lipschitz_in_the_euclidean_norm_too(self):
        layers = [keras.layers.Dense(units, use_bias=False) for units in (8, 8, 1)]
        found, model, weights = chain("infinity_norm", *layers, shape=(6,))
        assert svd(map_of(model, found.project(weights).values(), (6,)))[1][0] <= 1
