"""Penalties on norms of kernels and on orthogonality, against numpy's matrices in float64."""

import itertools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from prepared import Alone

import ganlab
from ganlab.functional import named_weights

pytestmark = pytest.mark.usefixtures("cpus")


def prepared(name, *layers, shape, **arguments):
    """A constraint, prepared for the model of these layers, and random weights by their names."""
    x = inputs = keras.Input(shape)
    for layer in layers:
        x = layer(x)
    model = keras.Model(inputs, x)
    found = ganlab.component("constraints", name)(**arguments)
    found.prepare(model)
    random = np.random.default_rng(1)
    return found, {key: random.normal(size=v.shape) / 2 for key, v in named_weights(model).items()}


def check(penalty, weights, by_numpy):
    """Compares a penalty and its gradient by the weights with a function of arrays and its central differences."""
    tensors = {name: tf.constant(value, tf.float32) for name, value in weights.items()}
    with tf.GradientTape() as tape:
        tape.watch(list(tensors.values()))
        value = penalty(tensors)
    assert value.shape == ()
    assert float(value) == pytest.approx(by_numpy(weights), rel=1e-4)
    found = tape.gradient(value, tensors, unconnected_gradients="zero")
    for name, weight in weights.items():
        expected = np.zeros_like(weight)
        for index in np.ndindex(weight.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = weight.copy()
                moved[index] += step
                ends.append(by_numpy({**weights, name: moved}))
            expected[index] = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(found[name], expected, rtol=2e-3, atol=1e-3 * max(np.abs(expected).max(), 1e-3))


def convolution_matrix(kernel, stride, side, wrap):
    """The matrix of a convolution by sums over taps: on a circle of `side` places an axis, or `valid` on a line."""
    *taps, inputs, outputs = kernel.shape
    places = side // stride if wrap else (side - taps[0]) // stride + 1
    d = len(taps)
    matrix = np.zeros((*[places] * d, outputs, *[side] * d, inputs))
    for place in itertools.product(range(places), repeat=d):
        for tap in np.ndindex(*taps):
            source = tuple((stride * p + t) % side for p, t in zip(place, tap, strict=True))
            matrix[(*place, slice(None), *source)] += kernel[tap].T
    return matrix.reshape(places**d * outputs, side**d * inputs)


class TestBoundPenalty:
    def test_value_and_gradient(self):
        layers = [
            keras.layers.Conv2D(3, 2, name="first"),
            keras.layers.Flatten(),
            keras.layers.Dense(2, name="second"),
        ]
        made, weights = prepared("bound_penalty", *layers, shape=(4, 4, 1), weight=0.5, target=0.3, power_iterations=20)
        state, replica = made.initial_state(as_tensors(weights)), Alone()
        for _ in range(2):
            state = made.advance(as_tensors(weights), state, None, replica)

        def norms(weights):
            first = convolution_matrix(weights["first/kernel"], 1, 4, wrap=False)
            return np.prod([np.linalg.norm(matrix, 2) for matrix in (first, weights["second/kernel"])])

        assert replica.logged["product"][0] == pytest.approx(norms(weights), rel=1e-4)
        check(lambda w: made.weight_penalty(w, state), weights, lambda w: 0.5 * max(0, norms(w) - 0.3) ** 2)

    def test_layers_may_trade(self):
        # Norms 4 and 1/4: the product, 1, costs nothing.
        made, _ = prepared("bound_penalty", *(keras.layers.Dense(1, name=n) for n in "ab"), shape=(1,))
        weights = as_tensors({"a/kernel": [[4.0]], "a/bias": [0.0], "b/kernel": [[0.25]], "b/bias": [0.0]})
        assert float(made.weight_penalty(weights, made.initial_state(weights))) == 0.0
        assert made.lipschitz_bound(weights) == pytest.approx(1.0)

    def test_a_cold_start_is_warmed_up(self):
        made, weights = prepared("bound_penalty", keras.layers.Dense(6, name="a"), shape=(8,), target=0.5)
        value = float(made.weight_penalty(as_tensors(weights), made.initial_state(as_tensors(weights))))
        assert value == pytest.approx((np.linalg.norm(weights["a/kernel"], 2) - 0.5) ** 2, rel=0.05)


def as_tensors(weights):
    return {name: tf.constant(value, tf.float32) for name, value in weights.items()}


def lorth(kernel, stride):
    """Achour et al.: the squared distance of the smaller Gram matrix from the identity, over the number of places."""
    side = stride * math.ceil((2 * kernel.shape[0] - 1) / stride)
    matrix = convolution_matrix(kernel, stride, side, wrap=True)
    rows, columns = matrix.shape
    gram = matrix @ matrix.T if rows <= columns else matrix.T @ matrix
    return np.sum((gram - np.eye(len(gram))) ** 2) / (side // stride) ** (kernel.ndim - 2)


class TestOrthogonalConvolution:
    @pytest.mark.parametrize(
        ("kind", "taps", "stride", "outputs"),
        [("Conv2D", 3, 1, 2), ("Conv2D", 3, 2, 5), ("Conv2D", 2, 1, 3), ("Conv1D", 4, 2, 5), ("Conv1D", 3, 3, 4)],
    )
    def test_value_and_gradient(self, kind, taps, stride, outputs):
        layer = getattr(keras.layers, kind)(outputs, taps, strides=stride, padding="same", name="layer")
        made, weights = prepared("orthogonal_convolution", layer, shape=(6, 6, 2)[2 - int(kind[4]) :], weight=0.5)
        check(made.weight_penalty, weights, lambda w: 0.5 * lorth(w["layer/kernel"], stride))

    @pytest.mark.parametrize(("rows", "columns"), [(4, 2), (2, 4)])
    def test_a_dense_layer(self, rows, columns):
        made, weights = prepared(
            "orthogonal_convolution", keras.layers.Dense(columns, name="a"), shape=(rows,), weight=2.0
        )

        def by_numpy(weights):
            kernel = weights["a/kernel"]
            gram = kernel.T @ kernel if columns < rows else kernel @ kernel.T
            return 2.0 * np.sum((gram - np.eye(len(gram))) ** 2)

        check(made.weight_penalty, weights, by_numpy)

    @pytest.mark.parametrize("outputs", [2, 8])
    def test_patches_without_overlap_are_orthogonal_if_their_matrix_is(self, outputs):
        # Kernels of 2 x 2 at stride 2 on one channel: an orthonormal matrix of 4 numbers costs nothing.
        layer = keras.layers.Conv2D(outputs, 2, strides=2, use_bias=False, name="layer")
        made, _ = prepared("orthogonal_convolution", layer, shape=(6, 6, 1))
        left, _, right = np.linalg.svd(np.random.default_rng(0).normal(size=(4, outputs)), full_matrices=False)
        kernel = (left @ right).reshape(2, 2, 1, outputs)
        weights = {"layer/kernel": tf.constant(kernel, tf.float32)}
        assert float(made.weight_penalty(weights)) == pytest.approx(0.0, abs=1e-6)
        assert made.lipschitz_bound(weights) == pytest.approx(1.0, rel=1e-4)

    @pytest.mark.slow
    @pytest.mark.parametrize("outputs", [2, 9])
    def test_a_trained_kernel_keeps_lengths_on_a_circle_and_stretches_nothing_at_zero_padding(self, outputs):
        layer = keras.layers.Conv1D(outputs, 3, strides=2, padding="same", use_bias=False, name="layer")
        made, weights = prepared("orthogonal_convolution", layer, shape=(8, 2), weight=1.0)
        kernel = tf.Variable(as_tensors(weights)["layer/kernel"])

        @tf.function
        def descend():
            for _ in tf.range(300):
                with tf.GradientTape() as tape:
                    value = made.weight_penalty({"layer/kernel": kernel})
                kernel.assign_sub(0.05 * tape.gradient(value, kernel))

        descend()
        left = float(made.weight_penalty({"layer/kernel": kernel}))
        assert left < 1e-3
        # On a circle of n places, what is left is the squared distance of the Gram matrix from the identity, over n.
        circle = convolution_matrix(kernel.numpy().astype(float), 2, 12, wrap=True)
        squares = np.linalg.svd(circle, compute_uv=False) ** 2
        np.testing.assert_allclose(squares, 1.0, atol=(6 * left) ** 0.5 + 1e-4)
        layer.kernel.assign(kernel)
        padded = np.reshape(layer(np.eye(16, dtype=np.float32).reshape(16, 8, 2)), (16, -1))
        assert np.linalg.norm(padded, 2) ** 2 <= squares.max() + 1e-6

    @pytest.mark.parametrize(
        ("kind", "arguments", "reason"),
        [
            ("Conv2D", {"dilation_rate": 2}, r"it is dilated by \(2, 2\)"),
            ("Conv2D", {"groups": 2}, "it takes groups of channels apart"),
            ("Conv2D", {"kernel_size": (3, 2)}, "differ between axes"),
            ("Conv2D", {"strides": 3, "kernel_size": 1, "filters": 4}, "4 outputs exceed the 2 numbers of a patch"),
            ("Conv2D", {"strides": 3, "kernel_size": 2, "filters": 20}, "strides .* exceed its taps"),
            ("Conv2DTranspose", {}, "it is a transposed convolution"),
            ("Conv1D", {"padding": "causal"}, "its padding is causal"),
            ("Conv3D", {}, "it has three axes"),
        ],
        ids=str,
    )
    def test_a_kernel_that_the_papers_do_not_cover_is_refused(self, kind, arguments, reason):
        layer = getattr(keras.layers, kind)(**{"filters": 2, "kernel_size": 3, "name": "layer", **arguments})
        space = int(kind[4])
        with pytest.raises(ganlab.IncompatibleError, match=rf"cannot constrain 'layer/kernel' of .*: .*{reason}"):
            prepared("orthogonal_convolution", layer, shape=(*[6] * space, 2))
