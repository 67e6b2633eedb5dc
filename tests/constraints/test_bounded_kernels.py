"""Constraints that bound the norm of every kernel, against singular values of explicit matrices in float64."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from prepared import map_of, prepared

pytestmark = pytest.mark.usefixtures("cpus")


def convolution(**arguments):
    return keras.layers.Conv2D(4, arguments.pop("taps", 3), use_bias=False, **arguments)


# Layers with inputs of two channels on odd sides, by what is special about them.
LAYERS = {
    "same": lambda: (convolution(padding="same"), (11, 9, 2)),
    "valid": lambda: (convolution(), (11, 9, 2)),
    "stride": lambda: (convolution(strides=2, padding="same"), (11, 9, 2)),
    "stride, valid": lambda: (convolution(strides=2), (11, 9, 2)),
    "wide stride": lambda: (convolution(taps=(5, 2), strides=(3, 3)), (14, 13, 2)),
    "even": lambda: (convolution(taps=4, strides=2, padding="same"), (12, 12, 2)),
    "dilation": lambda: (convolution(dilation_rate=2, padding="same"), (11, 11, 2)),
    "groups": lambda: (convolution(groups=2, padding="same"), (11, 9, 2)),
    "causal": lambda: (keras.layers.Conv1D(3, 3, padding="causal", use_bias=False), (9, 2)),
    "depthwise": lambda: (keras.layers.DepthwiseConv2D(3, strides=2, depth_multiplier=2, use_bias=False), (11, 11, 2)),
    "transposed": lambda: (keras.layers.Conv2DTranspose(3, 4, 2, padding="same", use_bias=False), (6, 5, 2)),
    "tall": lambda: (keras.layers.Dense(3, use_bias=False), (7,)),
    "square": lambda: (keras.layers.Dense(5, use_bias=False), (5,)),
    "wide": lambda: (keras.layers.Dense(7, use_bias=False), (3,)),
}
CONVOLUTIONS = [name for name in LAYERS if name not in ("tall", "square", "wide")]
# Those that bound every layer by one, and those of them that make rows or columns of the kernel orthonormal.
EVERYWHERE = ["aol", "gram_norm", "bjorck", "cayley", "householder", "polar_projection"]
ORTHONORMAL = ["bjorck", "cayley", "householder", "polar_projection"]


def on(name, layer, **arguments):
    """A constraint that is prepared for one layer, the layer, its kernel's name and a random kernel."""
    layer, shape = LAYERS[layer]()
    found, _, weights = prepared(name, layer, shape=shape, **arguments)
    return found, layer, shape, weights


def norm(matrix):
    gram = matrix @ matrix.T if len(matrix) < len(matrix.T) else matrix.T @ matrix
    return math.sqrt(np.linalg.eigvalsh(gram)[-1])


def effective(found, weights):
    (kernel,) = found.reparameterize(found.project(weights), {}).values()
    return kernel


def overlap(layer):
    """How many patches an input lies in; strides have no dilation here."""
    taps, strides = (getattr(layer, name, ()) for name in ("kernel_size", "strides"))
    return math.prod(-(-t // s) for t, s in zip(taps, strides, strict=True))


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("name", EVERYWHERE)
def test_no_layer_stretches_and_the_bound_says_so(name, layer):
    found, layer, shape, weights = on(name, layer)
    kernel = effective(found, weights)
    largest = norm(map_of(layer, [kernel], shape))
    assert 0.3 < largest <= 1 + 1e-5
    assert largest <= found.lipschitz_bound(dict.fromkeys(weights, kernel)) <= 1.02


@pytest.mark.parametrize("layer", ["tall", "wide", "same", "even", "depthwise", "transposed"])
@pytest.mark.parametrize("name", ORTHONORMAL)
def test_all_singular_values_are_one_before_the_root_of_the_overlap(name, layer):
    found, layer, _, weights = on(name, layer)
    matrix = np.reshape(effective(found, weights), (-1, layer.kernel.shape[-1]))
    values = np.linalg.svd(matrix.astype(np.float64), compute_uv=False)
    np.testing.assert_allclose(values, overlap(layer) ** -0.5, rtol=1e-5)


@pytest.mark.parametrize("name", ["aol", "gram_norm", "bjorck", "householder", "polar_projection"])
@pytest.mark.parametrize("scale", [1e-5, 0.0])
def test_small_and_zero_kernels(name, scale):
    found, _, _, weights = on(name, "stride")
    (key,) = weights
    small = {key: weights[key] * scale}
    with tf.GradientTape() as tape:
        tape.watch(small[key])
        kernel = effective(found, small)
    assert np.isfinite(tape.gradient(kernel, small[key])).all()
    if scale:
        np.testing.assert_allclose(kernel, effective(found, weights), rtol=1e-4, atol=1e-6)
    assert np.isfinite(kernel).all()


def differences(function, weights, direction, step=1e-3):
    """The derivative along a direction, from four values of the function."""
    (key,) = weights
    value = [float(function(weights[key] + s * step * direction)) for s in (1, -1, 2, -2)]
    return (8 * (value[0] - value[1]) - (value[2] - value[3])) / (12 * step)


@pytest.mark.parametrize("layer", ["wide", "even", "transposed"])
@pytest.mark.parametrize("name", ["aol", "gram_norm", "cayley", "householder"])
def test_gradients_are_those_of_finite_differences(name, layer):
    found, _, _, weights = on(name, layer)
    (key,) = weights
    random = np.random.default_rng(1)
    upstream, direction = (tf.constant(random.normal(size=weights[key].shape), tf.float32) for _ in range(2))

    def function(kernel):
        return tf.reduce_sum(upstream * effective(found, {key: kernel}))

    with tf.GradientTape() as tape:
        tape.watch(weights[key])
        value = function(weights[key])
    along = tf.reduce_sum(tape.gradient(value, weights[key]) * direction)
    assert float(along) == pytest.approx(differences(function, weights, direction), rel=2e-3, abs=2e-3)


class TestAOL:
    @pytest.mark.parametrize("layer", LAYERS)
    def test_each_input_is_scaled_by_the_sum_of_its_products_with_all(self, layer):
        # Theorem 1 on the explicit matrix J: column x over sqrt(sum_y |J'J|_xy), wherever no border is near.
        found, layer, shape, weights = on("aol", layer)
        (plain,) = weights.values()
        before, after = map_of(layer, [plain], shape), map_of(layer, [effective(found, weights)], shape)
        if isinstance(layer, keras.layers.Conv2DTranspose):
            before, after = before.T, after.T
            shape = layer.compute_output_shape((1, *shape))[1:]
        if len(shape) == 1 and len(before) < len(before.T):  # units are scaled
            sums = np.abs(before @ before.T).sum(axis=1)
            np.testing.assert_allclose(after, before / np.sqrt(sums)[:, None], rtol=1e-4)
            return
        sums = np.abs(before.T @ before).sum(axis=1)
        expected = before / np.sqrt(np.where(sums > 0, sums, 1))  # with wide strides nothing sees some inputs
        middle = tuple(slice(side // 2 - 1, side // 2 + 1) for side in shape[:-1]) or slice(None)
        columns = np.arange(math.prod(shape)).reshape(shape)[middle].ravel()
        np.testing.assert_allclose(after[:, columns], expected[:, columns], rtol=1e-4, atol=1e-6)

    def test_orthogonal_rows_become_orthonormal(self):
        found, _, _, weights = on("aol", "wide")
        (key,) = weights
        rows = np.linalg.qr(np.random.default_rng(2).normal(size=(7, 3)))[0].T
        kernel = effective(found, {key: tf.constant(np.diag([3.0, 0.1, 20.0]) @ rows, tf.float32)})
        np.testing.assert_allclose(kernel, rows, atol=1e-5)


class TestGramNorm:
    @pytest.mark.parametrize("layer", ["tall", "wide"])
    @pytest.mark.parametrize("iterations", [1, 3])
    def test_a_matrix_is_divided_by_its_schatten_norm(self, layer, iterations):
        # |G|^(2^-t) after t Gram steps is the root of order 2^(t + 1) of the sum of these powers of singular values.
        found, _, _, weights = on("gram_norm", layer, iterations=iterations)
        (kernel,) = weights.values()
        power = 2 ** (iterations + 1)
        values = np.linalg.svd(np.asarray(kernel, np.float64), compute_uv=False)
        np.testing.assert_allclose(effective(found, weights), kernel / (values**power).sum() ** (1 / power), rtol=1e-5)

    @pytest.mark.parametrize("layer", ["same", "stride", "groups"])
    def test_frequencies_and_their_correction_by_numpy(self, layer):
        found, layer, _, weights = on("gram_norm", layer, iterations=3, density=4)
        (kernel,) = weights.values()
        symbols = np.asarray(kernel, np.float64).reshape(3, 3, -1, 4)
        if layer.strides == (2, 2):
            cells = np.zeros((4, 4, 2, 4))
            cells[:3, :3] = symbols
            symbols = cells.reshape(2, 2, 2, 2, 2, 4).transpose(0, 2, 1, 3, 4, 5).reshape(2, 2, 8, 4)
        count = 4 * (len(symbols) - 1)
        parts = np.split(np.fft.fft2(symbols, (count, count), axes=(0, 1)), layer.groups, axis=-1)
        values = np.concatenate([np.linalg.svd(part, compute_uv=False) for part in parts])
        bound = ((values**16).sum(axis=-1) ** (1 / 16)).max() / math.cos(math.pi / 8) ** 2
        np.testing.assert_allclose(effective(found, weights), kernel / bound, rtol=1e-5)

    @pytest.mark.parametrize("layer", CONVOLUTIONS)
    def test_with_the_reshaped_matrix_no_layer_stretches_either(self, layer):
        found, layer, shape, weights = on("gram_norm", layer, operator="matrix")
        assert norm(map_of(layer, [effective(found, weights)], shape)) <= 1 + 1e-5

    def test_flat_spectra_are_the_worst_case(self):
        found, _, _, weights = on("gram_norm", "wide")
        (key,) = weights
        rows = np.linalg.qr(np.random.default_rng(2).normal(size=(7, 3)))[0].T
        kernel = effective(found, {key: tf.constant(5 * rows, tf.float32)})
        np.testing.assert_allclose(kernel, rows / 3 ** (1 / 128), atol=1e-5)


def near(kernel, distance):
    """The polar factor of a kernel, and a matrix whose singular values are that far from one."""
    left, values, right = np.linalg.svd(np.asarray(kernel, np.float64), full_matrices=False)
    signs = np.where(np.arange(len(values)) % 2, 1, -1)
    return left @ right, left @ np.diag(1 + distance * signs) @ right


class TestPolarProjection:
    @pytest.mark.parametrize("scale", [1e-4, 1.0, 1e3])
    @pytest.mark.parametrize("layer", ["tall", "wide"])
    def test_a_kernel_becomes_its_polar_factor_from_any_start(self, layer, scale):
        found, _, _, weights = on("polar_projection", layer)
        (key,) = weights
        projected = found.project({key: scale * weights[key]})[key]
        np.testing.assert_allclose(projected, near(weights[key], 0)[0], atol=1e-5)

    def test_errors_are_squared_in_each_iteration(self):
        # s (3 - s^2) / 2 at 1 + e is 1 - 3 e^2 / 2 - e^3 / 2.
        for iterations, expected in ((1, 0.9961875), (2, 1 - 1.5 * 0.0038125**2)):
            found, _, _, weights = on("polar_projection", "tall", iterations=iterations)
            (key,) = weights
            projected = found.project({key: tf.constant(near(weights[key], 0.05)[1], tf.float32)})[key]
            values = np.linalg.svd(projected, compute_uv=False)
            assert values.min() == pytest.approx(expected, abs=2e-6)
            assert values.max() <= 1 + 1e-6

    @pytest.mark.parametrize("distance", [0.01, 0.1, 0.14, 0.3, 0.6])
    def test_singular_values_are_within_a_thousandth_however_far_the_update_went(self, distance):
        found, _, _, weights = on("polar_projection", "tall")
        (key,) = weights
        projected = found.project({key: tf.constant(near(weights[key], distance)[1], tf.float32)})[key]
        np.testing.assert_allclose(np.linalg.svd(projected, compute_uv=False), 1, atol=1e-3)


class TestCayley:
    @pytest.mark.parametrize("layer", ["tall", "square"])
    def test_a_kernel_by_the_formula_of_the_paper(self, layer):
        found, _, _, weights = on("cayley", layer)
        (kernel,) = (np.asarray(weight, np.float64) for weight in weights.values())
        count = len(kernel.T)
        square, rest = kernel[:count], kernel[count:]
        skew = square - square.T + rest.T @ rest
        inverse = np.linalg.inv(np.eye(count) + skew)
        expected = np.concatenate([inverse @ (np.eye(count) - skew), -2 * rest @ inverse])
        np.testing.assert_allclose(effective(found, weights), expected, atol=1e-5)


class TestHouseholder:
    @pytest.mark.parametrize("layer", ["tall", "wide", "square"])
    def test_a_kernel_is_the_product_of_reflections(self, layer):
        found, _, _, weights = on("householder", layer)
        (kernel,) = (np.asarray(weight, np.float64) for weight in weights.values())
        tall = kernel if len(kernel) >= len(kernel.T) else kernel.T
        product = np.eye(len(tall))
        for column in tall.T:
            product = product @ (np.eye(len(tall)) - 2 * np.outer(column, column) / (column @ column))
        expected = product[:, : len(tall.T)]
        np.testing.assert_allclose(effective(found, weights), expected if tall is kernel else expected.T, atol=1e-5)

    def test_a_column_of_zeros_is_a_reflection_left_out(self):
        found, _, _, weights = on("householder", "tall")
        (key,) = weights
        kernel = effective(found, {key: weights[key] * [0.0, 1.0, 0.0]})
        column = np.asarray(weights[key], np.float64)[:, 1]
        expected = np.eye(7) - 2 * np.outer(column, column) / (column @ column)
        np.testing.assert_allclose(kernel, expected[:, :3], atol=1e-5)
