"""Spectral normalization, against numpy's singular values and by hand."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from prepared import constraint, convolution, map_of, on_a_matrix, prepared, singular_values
from small import small

import ganlab
from ganlab.training.graph.trainer import Trainer
from ganlab.training.graph.variables import read, values_of

pytestmark = pytest.mark.usefixtures("cpus")

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("critic", ["mlp", "dcgan"])
def test_effective_kernels_have_singular_value_one(critic):
    parts = {"optimizer": ganlab.component("optimizers", "adam")(learning_rate=1e-3)}
    if critic == "dcgan":
        parts |= {
            "dataset": ganlab.component("datasets", "digits")(),
            "architecture": ganlab.component("architectures", "dcgan")(channels=4, latent_dim=4),
        }
    trainer = Trainer(small(constraints=[constraint("spectral_norm")], **parts))
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


def test_the_gradient_is_that_of_the_normalized_kernel():
    # d/dW <G, W / s(W)> = G / s - <G, W> u v' / s^2 with the leading singular vectors u, v.
    random = np.random.default_rng(1)
    matrix, direction = (random.normal(size=(6, 4)).astype(np.float32) for _ in range(2))
    norm, weights = on_a_matrix("spectral_norm", matrix, power_iterations=50)
    state = norm.advance(weights, norm.initial_state(weights), None, None)
    with tf.GradientTape() as tape:
        tape.watch(weights["layer/kernel"])
        value = tf.reduce_sum(direction * norm.reparameterize(weights, state)["layer/kernel"])
    left, singular, right = np.linalg.svd(matrix)
    expected = direction / singular[0] - np.sum(direction * matrix) * np.outer(left[:, 0], right[0]) / singular[0] ** 2
    np.testing.assert_allclose(tape.gradient(value, weights["layer/kernel"]), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("geometry", [{"strides": 2, "padding": "same"}, {}, {"groups": 2, "padding": "same"}], ids=str)
def test_the_norm_of_the_convolution_itself_is_the_target(geometry):
    layer, shape = convolution(**geometry), (7, 6, 2)
    norm, _, weights = prepared(
        "spectral_norm", layer, shape=shape, operator="convolution", target=0.7, power_iterations=60
    )
    state = norm.initial_state(weights)
    for _ in range(5):
        state = norm.advance(weights, state, None, None)
    effective = norm.reparameterize(weights, state)
    assert singular_values(map_of(layer, [effective["layer/kernel"]], shape))[0] == pytest.approx(0.7, rel=1e-3)
    assert norm.lipschitz_bound(effective) == pytest.approx(0.7, rel=1e-3)
    assert norm.lipschitz_bound(effective) >= singular_values(layer.kernel.numpy().reshape(-1, 4))[0] * 0.999


def test_with_the_reshaped_matrix_the_convolution_may_be_steeper_and_the_bound_includes_it():
    layer, shape = convolution(), (8, 8, 1)
    norm, _, _ = prepared("spectral_norm", layer, shape=shape)
    weights = {"layer/kernel": tf.ones([3, 3, 1, 4])}  # the matrix has the norm 6, the convolution up to 3 times
    effective = norm.reparameterize(weights, norm.initial_state(weights))
    np.testing.assert_allclose(effective["layer/kernel"], np.full((3, 3, 1, 4), 1 / 6), rtol=1e-4)
    largest = singular_values(map_of(layer, [effective["layer/kernel"]], shape))[0]
    assert largest > 2
    assert largest <= norm.lipschitz_bound(effective) <= 3


def test_more_iterations_an_update_come_nearer():
    matrix = RANDOM.normal(size=(30, 20))
    off = []
    for iterations in (1, 5, 25):
        norm, weights = on_a_matrix("spectral_norm", matrix, power_iterations=iterations)
        start = {"layer/kernel": tf.one_hot(0, 20)}
        effective = norm.reparameterize(weights, norm.advance(weights, start, None, None))
        off.append(singular_values(effective["layer/kernel"])[0] - 1)
    assert off[0] > 2 * off[1] > 4 * off[2] >= 0


def test_a_kernel_that_was_zero_is_followed_again():
    norm, zero = on_a_matrix("spectral_norm", np.zeros((3, 2)))
    state = norm.advance(zero, norm.initial_state(zero), None, None)
    assert np.isfinite(norm.reparameterize(zero, state)["layer/kernel"]).all()
    weights = {"layer/kernel": tf.constant([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]])}
    for _ in range(20):
        state = norm.advance(weights, state, None, None)
    np.testing.assert_allclose(norm.reparameterize(weights, state)["layer/kernel"], weights["layer/kernel"] / 3)


def test_an_unknown_convolution_is_refused():
    layer = keras.layers.SeparableConv2D(3, 3, name="apart")
    with pytest.raises(ganlab.IncompatibleError, match=r"linear map of 'apart/.* \(SeparableConv2D\), is unknown"):
        prepared("spectral_norm", layer, shape=(8, 8, 2), operator="convolution")
    assert prepared("spectral_norm", layer, shape=(8, 8, 2))[0].lipschitz_bound({}) is None
