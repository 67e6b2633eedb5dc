"""The whole matrices of skew and orthogonal convolutions, in float64 and in float32."""

import math

import numpy as np
import pytest
import scipy.linalg
import tensorflow as tf
from ganlab_builtin.layers import AOCConv2D, AOCConv2DTranspose, BROConv2D
from orthogonal_formulas import product_of_projectors, skew_matrix

from ganlab import layers

# Kernel sizes, filters, and the shape of an example: sides odd and even, channels more, fewer, and one.
SIZES = [((3, 3), 3, (5, 4, 3)), ((3, 1), 5, (3, 5, 2)), ((5, 3), 2, (6, 5, 5)), ((3, 3), 1, (3, 4, 1))]


def matrix_of(layer, shape, scale=1.0, seed=0):
    """The matrix (outputs, inputs) of a layer with random weights."""
    layer.build((None, *shape))
    random = np.random.default_rng(seed)
    layer.set_weights([scale * random.normal(size=v.shape) for v in layer.weights])
    images = np.eye(math.prod(shape)).reshape(-1, *shape)
    return layer(tf.constant(images, layer.compute_dtype)).numpy().reshape(len(images), -1).T.astype(np.float64)


@pytest.mark.parametrize(("size", "filters", "shape"), SIZES)
def test_long_series_are_exponentials(size, filters, shape):
    layer = layers.SkewConv2D(filters, size, terms=18, use_bias=False, dtype="float64")
    matrix = matrix_of(layer, shape, 0.3)
    kernel = layer.kernel.numpy()
    skew, _ = skew_matrix(kernel, shape[:2])
    np.testing.assert_array_equal(skew, -skew.T)
    channels = kernel.shape[2]
    exponential = scipy.linalg.expm(skew).reshape(*shape[:2], channels, *shape[:2], channels)
    exponential = exponential[:, :, :filters, :, :, : shape[2]].reshape(matrix.shape)
    np.testing.assert_allclose(matrix, exponential, atol=3e-6)  # the margin is 2e-6
    if filters == shape[2]:
        np.testing.assert_allclose(matrix.T @ matrix, np.eye(len(matrix)), atol=5e-6)


@pytest.mark.parametrize("terms", [2, 3, 4, 5, 6])
def test_short_series_keep_what_the_remainder_allows(terms):
    values = np.linalg.svd(
        matrix_of(layers.SkewConv2D(3, terms=terms, use_bias=False, dtype="float64"), (5, 4, 3)), compute_uv=False
    )
    rest = 1 / math.factorial(terms)
    assert (1 - rest) / (1 + rest) * (1 - 3e-6) <= values.min() <= values.max() <= 1


@pytest.mark.parametrize("size", [(3, 3), (1, 1), (5, 3)])
@pytest.mark.parametrize("scale", [1e-3, 0.1, 1e4])
def test_a_skew_kernel_is_divided_by_no_less_than_its_norm(size, scale):
    for channels in (1, 2, 5):
        layer = layers.SkewConv2D(channels, size, dtype="float64")
        layer.build((None, 4, 4, channels))
        layer.kernel.assign(scale * np.random.default_rng(channels).normal(size=layer.kernel.shape))
        kernel, nu = (v.numpy() for v in layer._skew())
        # On infinite images, of which every border of zeros only takes a part.
        norm = np.linalg.norm(np.fft.fft2(kernel, (64, 64), axes=(0, 1)), 2, axis=(2, 3)).max()
        assert norm <= nu <= 1 + 1e-12
        assert nu <= math.sqrt(math.prod(size)) * norm * channels ** (1 / 128) + 2e-12


@pytest.mark.parametrize(("size", "filters", "shape"), [*SIZES, ((2, 4), 4, (4, 5, 4)), ((1, 1), 2, (2, 2, 3))])
def test_orthogonal_convolutions_have_singular_values_of_one(size, filters, shape):
    for scale in (0.0, 0.1, 1.0, 1e3):
        layer = layers.OrthogonalConv2D(filters, size, use_bias=False)
        values = np.linalg.svd(matrix_of(layer, shape, scale), compute_uv=False)
        np.testing.assert_allclose(values, 1.0, atol=1e-5)
        kernel = product_of_projectors(layer.kernel.numpy().astype(np.float64), size)
        kernel = kernel[:, :, : shape[2], :filters]
        # Cayley's transform is ill-conditioned for large weights; its result is orthogonal all the same.
        np.testing.assert_allclose(layer.effective_kernel(), kernel, atol=1e-5 if scale <= 1 else 1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["soc", "bcop", "bcop-zeros", "aoc", "bro"])
@pytest.mark.parametrize("scale", [0.0, 1e-3, 0.1, 1.0, 30.0, 1e3])
def test_no_norm_is_above_one_in_float32(kind, scale):
    for seed in range(2 if kind in ("aoc", "bro") else 4):
        for size, filters, shape in [*SIZES, ((3, 3), 16, (3, 3, 16))]:
            if kind == "soc":
                layer = layers.SkewConv2D(filters, size, terms=(2, 3, 6, 16)[seed], use_bias=False)
            elif kind == "aoc":
                strides = [min(k, 2) for k in size]
                layer = (AOCConv2D, AOCConv2DTranspose)[seed % 2](filters, size, strides, use_bias=False)
            elif kind == "bro":
                size = [min(k, n) for k, n in zip(size, shape, strict=False)]
                layer = BROConv2D(filters, size, padding=("same", "circular")[seed % 2], use_bias=False)
            else:
                padding = "same" if kind == "bcop-zeros" else "circular"
                layer = layers.OrthogonalConv2D(filters, size, padding, use_bias=False)
            assert np.linalg.norm(matrix_of(layer, shape, scale, seed), 2) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.03, 1e3])
def test_many_channels_lift_no_norm_above_one(scale):
    # Sums of many small numbers and a one lose the small ones, so rounding is not the same to both sides here.
    layer = layers.OrthogonalConv2D(512, use_bias=False)
    layer.build((None, 3, 3, 512))
    layer.kernel.assign(scale * np.random.default_rng(3).normal(size=layer.kernel.shape))
    frequencies = np.fft.fft2(layer.effective_kernel().numpy().astype(np.float64), (3, 3), axes=(0, 1))
    values = np.linalg.svd(frequencies[[0, 1], [0, 1]], compute_uv=False)
    # Rounding is taken for 512 * 6e-8 at most: half of it for the matrix, and twice for each of four projectors.
    assert 1 - 3e-4 < values.min() <= values.max() <= 1


def test_gradients_of_zero_weights_are_finite():
    kinds = (layers.SkewConv2D, layers.OrthogonalConv2D, AOCConv2D, BROConv2D)
    for layer in [*(kind(3) for kind in kinds), layers.OrthogonalConv2D(1)]:
        layer.build((None, 4, 4, 3))
        layer.kernel.assign(tf.zeros_like(layer.kernel))
        x = tf.random.stateless_normal([2, 4, 4, 3], [1, 2])
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x)[:, 0] ** 3)
        assert np.all(np.isfinite(tape.gradient(loss, layer.kernel)))


def test_senseless_sizes_are_refused():
    with pytest.raises(ValueError, match=r"SkewConv2D\(filters=0, kernel_size=3\): each must be at least 1"):
        layers.SkewConv2D(0)
    with pytest.raises(ValueError, match=r"SkewConv2D\(kernel_size=\(3, 2\)\): both sides must be odd"):
        layers.SkewConv2D(2, (3, 2))
    with pytest.raises(ValueError, match=r"SkewConv2D\(terms=1\): it must be at least 2"):
        layers.SkewConv2D(2, terms=1)
    with pytest.raises(ValueError, match=r"padding='valid'\): it must be 'circular' or 'same'"):
        layers.OrthogonalConv2D(2, padding="valid")
    with pytest.raises(ValueError, match=r"kernel_size=\(5, 5\)\) got the shape \(None, 1, 4, 2\); height and width"):
        layers.OrthogonalConv2D(2, 5).build((None, 1, 4, 2))
