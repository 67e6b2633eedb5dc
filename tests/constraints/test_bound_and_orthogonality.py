"""Penalties on norms of kernels and on orthogonality, against numpy's matrices in float64."""

import itertools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from prepared import Alone, check_gradients, on_a_matrix, prepared, singular_values

import ganlab

pytestmark = pytest.mark.usefixtures("cpus")


def check(penalty, weights, by_numpy):
    """Compares a penalty and its gradient by the weights with a function of arrays and its central differences."""
    names, arrays = list(weights), [weight.numpy().astype(np.float64) for weight in weights.values()]
    with tf.GradientTape() as tape:
        tape.watch(list(weights.values()))
        value = penalty(weights)
    assert value.shape == ()
    assert float(value) == pytest.approx(by_numpy(dict(zip(names, arrays, strict=True))), rel=1e-4)
    found = tape.gradient(value, list(weights.values()))
    check_gradients(lambda moved: by_numpy(dict(zip(names, moved, strict=True))), arrays, found)


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
        first, second = keras.layers.Conv2D(3, 2, use_bias=False), keras.layers.Dense(2, use_bias=False)
        made, _, weights = prepared(
            "bound_penalty", first, keras.layers.Flatten(), second, shape=(4, 4, 1), weight=0.5, power_iterations=100
        )
        state, replica = made.initial_state(weights), Alone()
        for _ in range(2):
            state = made.advance(weights, state, None, replica)

        def product(weights):
            of_first, of_second = weights.values()
            matrices = convolution_matrix(of_first, 1, 4, wrap=False), of_second
            return np.prod([np.linalg.norm(matrix, 2) for matrix in matrices])

        as_arrays = {name: weight.numpy().astype(np.float64) for name, weight in weights.items()}
        assert replica.logged["product"][0] == pytest.approx(product(as_arrays), rel=1e-4)
        check(lambda w: made.weight_penalty(w, state), weights, lambda w: 0.5 * max(0, product(w) - 1.0) ** 2)

    def test_layers_may_trade(self):
        # Norms 4 and 1/4: the product, 1, costs nothing.
        layers = (keras.layers.Dense(1, use_bias=False, name=name) for name in "ab")
        made, _, _ = prepared("bound_penalty", *layers, shape=(1,))
        weights = {"a/kernel": tf.constant([[4.0]]), "b/kernel": tf.constant([[0.25]])}
        assert float(made.weight_penalty(weights, made.initial_state(weights))) == 0.0
        assert made.lipschitz_bound(weights) == pytest.approx(1.0)

    def test_a_cold_start_is_warmed_up(self):
        made, weights = on_a_matrix("bound_penalty", np.random.default_rng(1).normal(size=(8, 6)), target=0.5)
        value = float(made.weight_penalty(weights, made.initial_state(weights)))
        assert value == pytest.approx((singular_values(weights["layer/kernel"])[0] - 0.5) ** 2, rel=0.05)


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
        layer = getattr(keras.layers, kind)(outputs, taps, strides=stride, padding="same", use_bias=False, name="layer")
        shape = (6, 6, 2)[2 - int(kind[4]) :]
        made, _, weights = prepared("orthogonal_convolution", layer, shape=shape, weight=0.5)
        check(made.weight_penalty, weights, lambda w: 0.5 * lorth(w["layer/kernel"], stride))

    @pytest.mark.parametrize(("rows", "columns"), [(4, 2), (2, 4)])
    def test_a_dense_layer(self, rows, columns):
        matrix = np.random.default_rng(1).normal(size=(rows, columns))
        made, weights = on_a_matrix("orthogonal_convolution", matrix, weight=2.0)

        def by_numpy(weights):
            kernel = weights["layer/kernel"]
            gram = kernel.T @ kernel if columns < rows else kernel @ kernel.T
            return 2.0 * np.sum((gram - np.eye(len(gram))) ** 2)

        check(made.weight_penalty, weights, by_numpy)

    @pytest.mark.parametrize("outputs", [2, 8])
    def test_patches_without_overlap_are_orthogonal_if_their_matrix_is(self, outputs):
        # Kernels of 2 x 2 at stride 2 on one channel: an orthonormal matrix of 4 numbers costs nothing.
        layer = keras.layers.Conv2D(outputs, 2, strides=2, use_bias=False, name="layer")
        made, _, _ = prepared("orthogonal_convolution", layer, shape=(6, 6, 1))
        left, _, right = np.linalg.svd(np.random.default_rng(0).normal(size=(4, outputs)), full_matrices=False)
        kernel = (left @ right).reshape(2, 2, 1, outputs)
        weights = {"layer/kernel": tf.constant(kernel, tf.float32)}
        assert float(made.weight_penalty(weights)) == pytest.approx(0.0, abs=1e-6)
        assert made.lipschitz_bound(weights) == pytest.approx(1.0, rel=1e-4)

    @pytest.mark.slow
    @pytest.mark.parametrize("outputs", [2, 9])
    def test_a_trained_kernel_keeps_lengths_on_a_circle_and_stretches_nothing_at_zero_padding(self, outputs):
        layer = keras.layers.Conv1D(outputs, 3, strides=2, padding="same", use_bias=False, name="layer")
        made, _, weights = prepared("orthogonal_convolution", layer, shape=(8, 2), weight=1.0)
        kernel = tf.Variable(weights["layer/kernel"] / 2)

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
