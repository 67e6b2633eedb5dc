"""Certificates of convolutional, residual and conditional critics: above every attack, as tight as others compute."""

import os
import time

import keras
import numpy as np
import pytest
import tensorflow as tf
from critics import points, weights_of
from ganlab_certify.averaged import averaged_bound
from ganlab_certify.blocks import _evaluated, blockwise_bounds
from ganlab_certify.chains import Chain, Stage, UnsuitableError
from ganlab_certify.keras_networks import network_of
from ganlab_certify.patterns import exact_constant
from ganlab_certify.semidefinite import program_of, semidefinite_bound
from ganlab_certify.splitting import split_everywhere
from ganlab_certify.waves import frequency_bounds, waves_of

from ganlab.layers import GroupSort, ProjectionHead
from ganlab.lipschitz import attacked_constant, certificate, ladder

layers = keras.layers


def block(x, width, *, pool, activation="relu"):
    y = layers.Conv2D(width, 3, padding="same")(layers.Activation(activation)(x))
    y = layers.Conv2D(width, 3, padding="same")(layers.Activation(activation)(y))
    if pool:
        x, y = layers.AveragePooling2D(2)(x), layers.AveragePooling2D(2)(y)
    return layers.Add()([layers.Conv2D(width, 1, use_bias=False)(x) if pool else x, y])


def residual(labels, activation="relu"):
    x = y = keras.Input((4, 4, 2))
    label = keras.Input((3,)) if labels else None
    if labels == "planes":
        y = layers.Concatenate()([y, layers.UpSampling2D((4, 4))(layers.Reshape((1, 1, 3))(label))])
    y = block(block(y, 3, pool=True, activation=activation), 3, pool=False, activation=activation)
    y = layers.GlobalAveragePooling2D()(layers.Activation(activation)(y))
    if labels == "projection":
        return keras.Model([x, label], ProjectionHead()([y, label]))
    return keras.Model([x, label] if labels else x, layers.Dense(1)(y))


def strided(activation="relu", *, groups=1):
    x = keras.Input((6, 6, 2))
    y = layers.Conv2D(4, 4, strides=2, padding="same", activation=activation, groups=groups)(x)
    y = layers.Conv2D(4, 3, padding="valid", dilation_rate=1, activation=activation)(y)
    return keras.Model(x, layers.Dense(1)(layers.Flatten()(y)))


def dense(widths=(6, 5), activation="relu", inputs=3):
    x = y = keras.Input((inputs,))
    for width in widths:
        y = layers.Activation(activation)(layers.Dense(width)(y))
    return keras.Model(x, layers.Dense(1)(y))


def sequences():
    x = keras.Input((8, 2))
    y = layers.Conv1D(4, 3, strides=2, padding="same", activation="elu")(x)
    y = layers.AveragePooling1D(2)(layers.Conv1D(3, 2, activation="softplus")(y))
    return keras.Model(x, layers.Dense(1)(layers.Flatten()(y)))


def vectors():
    x, label = keras.Input((3,)), keras.Input((2,))
    y = layers.Dense(6, activation="relu")(layers.Concatenate()([x, label]))
    return keras.Model([x, label], layers.Dense(1)(layers.Add()([y, layers.Dense(6, activation="tanh")(y)])))


KINDS = {
    "dense": dense,
    "tanh": lambda: dense(activation="tanh"),
    "sorted": lambda: dense((6, 4), GroupSort()),
    "sequences": sequences,
    "strided": strided,
    "groups": lambda: strided("leaky_relu", groups=2),
    "residual": lambda: residual(None),
    "smooth residual": lambda: residual(None, "silu"),
    "projection": lambda: residual("projection"),
    "planes": lambda: residual("planes"),
    "vectors": vectors,
}


def made(kind, seed=0):
    return weighted(KINDS[kind](), seed)


def weighted(model, seed):
    random = np.random.default_rng(seed)
    for variable in model.weights:
        fan = np.prod(variable.shape[:-1]) if len(variable.shape) > 1 else 10
        variable.assign(random.normal(size=variable.shape) * np.sqrt(2 / fan))
    return model


def critic_of(model, labels):
    rows = [tf.one_hot(labels, each.shape[1]) for each in model.inputs[1:]]
    return lambda x: tf.reshape(model([tf.convert_to_tensor(x), *rows] if rows else x, training=False), [-1])


@pytest.mark.parametrize("kind", ["groups", "sequences", "projection", "planes", "vectors"])
def test_a_network_is_the_model_for_every_label(kind):
    model = made(kind)
    network = network_of(model, weights_of(model))
    chains, x = network.chains(), points(model, 6)
    for label in range(network.classes):
        chain, y = chains[label % len(chains)], x.reshape(len(x), -1)
        for stage in chain.stages:
            y = y @ stage.matrix.T + stage.bias
            y = stage.apply(y) if stage.apply else y
        scores = critic_of(model, np.full(len(x), label))(x)
        np.testing.assert_allclose(y @ chain.last + chain.bias, scores, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["dense", "residual", "vectors"])
def test_the_gradient_of_the_bound_in_blocks(kind):
    model = made(kind)
    network = network_of(model, weights_of(model))
    logs = _evaluated(network, None)[0] + 0.3
    gradient = _evaluated(network, logs)[2]
    steps = 1e-6 * np.eye(len(logs))
    ends = [[np.log(_evaluated(network, logs + sign * step)[1].max()) for step in steps] for sign in (1, -1)]
    np.testing.assert_allclose(gradient, (np.array(ends[0]) - ends[1]) / 2e-6, atol=1e-6)
    program = program_of(network.chains()[0])
    with np.errstate(divide="raise", over="raise"):
        for step in (-5.0, -1e3, 1e3):  # these weights are too small, zero and infinite
            assert _evaluated(network, logs + step)[1].max() == np.inf
            assert program.evaluated(program.evaluated(None)[0] + step)[1].max() == np.inf


@pytest.mark.parametrize("kind", [pytest.param("groups", marks=pytest.mark.slow), "projection"])
def test_the_bound_by_frequencies(kind):
    model = made(kind)
    network = network_of(model, weights_of(model))
    waves = waves_of(network)
    logs = waves.evaluated(None)[0] + 0.3
    _, bounds, _, gradient = waves.evaluated(logs, 0.1)
    steps = 1e-5 * np.eye(len(logs))
    ends = [[waves.evaluated(logs + sign * step, 0.1)[2] for step in steps] for sign in (1, -1)]
    np.testing.assert_allclose(gradient, (np.array(ends[0]) - ends[1]) / 2e-5, atol=1e-7)
    # A larger network than the one with borders.
    assert (bounds * (1 + 1e-9) >= _evaluated(network, logs)[1]).all()
    assert waves.evaluated(logs - 5.0)[1].max() == np.inf


def test_the_bound_by_frequencies_is_that_of_the_torus():
    x = keras.Input((4, 4, 2))
    y = layers.Conv2D(3, 3, padding="same", activation="relu")(x)
    y = layers.Conv2D(2, 3, strides=2, padding="same", activation="relu")(y)
    model = keras.Model(x, layers.Dense(1)(layers.Flatten()(y)))
    waves = waves_of(network_of(model, weights_of(model)))
    logs = waves.evaluated(None)[0]
    logs += np.random.default_rng(0).uniform(0.0, 0.3, len(logs))

    def circular(kernel, before, stride):
        """The matrix on six by six pixels, or half as many: 2 x 2 cells, and one more for the reach of one."""
        units = np.eye(36 * kernel.shape[2]).reshape(-1, 6, 6, kernel.shape[2])
        taps = np.ndindex(kernel.shape[:2])
        rolled = [np.roll(units, (before - a, before - b), axis=(1, 2)) @ kernel[a, b] for a, b in taps]
        return sum(rolled)[:, ::stride, ::stride].reshape(len(units), -1).T

    first, second, head = (np.asarray(model.layers[i].kernel, np.float64) for i in (1, 2, 4))
    matrices, last = [circular(first, 1, 1), circular(second, 0, 2)], np.zeros((3, 3, 2))
    last[:2, :2] = head.reshape(2, 2, 2)
    stages = [Stage(m, np.zeros(len(m)), np.zeros(len(m)), np.ones(len(m))) for m in matrices]
    everywhere = np.concatenate([np.tile(logs[:12].reshape(2, 2, 3), (3, 3, 1)).ravel(), np.tile(logs[12:], 9)])
    value = program_of(Chain(tuple(stages), last.ravel(), 0.0)).evaluated(everywhere)[2]
    assert np.log(waves.evaluated(logs)[1].max()) == pytest.approx(value, abs=1e-6)


def test_networks_that_are_no_convolutions_have_no_frequencies():
    x = keras.Input((4, 4, 1))
    pooled = layers.AveragePooling2D(3, strides=1, padding="same")(x)  # divided by fewer pixels at the border
    added = layers.Add()([layers.Conv2D(2, 3, padding="same")(x), layers.Conv2D(2, 1)(x)])  # not zero outside the image
    convolved = layers.Conv2D(2, 3, padding="same")(added)
    ends = [layers.Dense(1)(layers.Flatten()(layers.ReLU()(y))) for y in (pooled, convolved)]
    for model, message in (
        *((made(kind), "no pixels") for kind in ("dense", "vectors")),
        (keras.Model(x, ends[0]), "is not a convolution"),
        (keras.Model(x, ends[1]), "without an activation between"),
    ):
        with pytest.raises(UnsuitableError, match=message):
            frequency_bounds(network_of(model, weights_of(model)))


@pytest.mark.slow
def test_the_bound_in_blocks_of_dense_layers_is_the_semidefinite_one():
    model = made("dense")
    network = network_of(model, weights_of(model))
    (chain,) = network.chains()
    (bound,) = blockwise_bounds(network, seconds=60)
    exact = semidefinite_bound(chain, seconds=60)
    assert exact <= bound * (1 + 1e-5)
    assert bound <= 1.03 * exact


# Networks of each kind, and starts of the attack on each.
_NETWORKS, _STARTS = (
    int(os.environ.get(f"GANLAB_CERTIFY_{each}", count)) for each, count in (("NETWORKS", 3), ("STARTS", 1000))
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_certificate_is_below_an_attack(kind):
    model, began, ratios = KINDS[kind](), time.monotonic(), []
    labels = np.arange(_STARTS) % (model.inputs[1].shape[1] if len(model.inputs) > 1 else 1)
    critic = critic_of(model, labels)  # traced once: the networks are other values of its weights
    for seed in range(_NETWORKS):
        weighted(model, seed)
        attacked = attacked_constant(critic, points(model, _STARTS), steps=50, seconds=600)
        network = network_of(model, weights_of(model))
        bounds = {"products": certificate(model)(weights_of(model))}
        if all(node.stage is None or node.stage.group == 1 for node in network.nodes):
            bounds["blocks"] = max(blockwise_bounds(network, seconds=1))
        if all(len(node.shape) == 3 for node in network.nodes):
            bounds["frequencies"] = max(frequency_bounds(network, seconds=1)[1])
        for chain in network.chains():
            bounds["averaged"] = max(bounds.get("averaged", 0.0), averaged_bound(chain))
            bounds["semidefinite"] = max(bounds.get("semidefinite", 0.0), semidefinite_bound(chain, seconds=1))
        if kind == "dense":
            bounds["exact"] = exact_constant(chain, seconds=5)[1]
        assert min(bounds.values()) >= attacked * (1 - 1e-4), (seed, bounds)
        assert bounds["semidefinite"] <= 1.01 * bounds["averaged"] <= 1.02 * bounds["products"], (seed, bounds)
        ratios.append(min(bounds.values()) / attacked)
    print(
        f"{kind}: {_NETWORKS} networks, {_STARTS:,} restarts; certified over attacked at least {min(ratios):.4f}, "
        f"median {np.median(ratios):.4f}; {time.monotonic() - began:.0f} s"
    )


def test_the_bound_of_each_label():
    model = made("projection")
    (rung,) = ladder(model, weights_of(model), rungs=("averaged",))
    assert len(rung.by_label) == 3
    assert rung.bound == max(rung.by_label) > min(rung.by_label)
    # The score is linear in psi and the embedding of its label: with one label's for all, all bounds are that label's.
    table = model.layers[-1].label_embedding.kernel
    table.assign(np.repeat(table[1:2], 3, axis=0))
    (one,) = ladder(model, weights_of(model), rungs=("averaged",))
    np.testing.assert_allclose(one.by_label, [rung.by_label[1]] * 3, rtol=1e-9)


@pytest.mark.parametrize("inputs", [1, 2])
def test_the_steepest_slope_everywhere(inputs):
    model, random = dense((5, 4), inputs=inputs), np.random.default_rng(3)
    for variable in model.weights:
        variable.assign(random.normal(size=variable.shape))
    (chain,) = network_of(model, weights_of(model)).chains()
    _, exact = exact_constant(chain)
    found, bound = split_everywhere(chain, seconds=300, tolerance=0.01)
    assert found <= exact * (1 + 1e-9) <= bound * (1 + 2e-9)
    assert bound <= 1.0101 * exact
