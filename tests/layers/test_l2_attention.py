"""Attention by distances: the bound of its Jacobian by ascent and in closed form, and what it leaves unchanged."""

import numpy as np
import pytest
import scipy.special
import tensorflow as tf

from ganlab.layers import L2SelfAttention
from ganlab.layers.attention import places_bound


def layer_of(shape, heads=1, scales=(1.0, 1.0, 1.0), dtype="float64"):
    layer = L2SelfAttention(heads, dtype=dtype)
    layer.build((None, *shape))
    random = np.random.default_rng(0)
    for weight, scale in zip(layer.weights, scales, strict=True):
        weight.assign(scale * random.normal(size=weight.shape))
    return layer


def ascended(function, shape, *, size=1.0, steps=120, dtype=tf.float64):
    """The largest norm of the Jacobian along directions and at points that ascent finds from ten sizes on."""
    random = np.random.default_rng(1)
    sizes = size * np.geomspace(0.01, 10, 10).reshape(-1, 1, 1)
    x = tf.Variable(sizes * random.normal(size=(10, *shape)), dtype=dtype)
    direction = tf.Variable(random.normal(size=(10, *shape)), dtype=dtype)

    def length(y):
        return tf.norm(y, axis=[1, 2])

    @tf.function
    def step(rate):
        with tf.GradientTape() as tape:
            along = direction / length(direction)[:, None, None]
            with tf.autodiff.ForwardAccumulator(x, along) as forward:
                y = function(x)
            slopes = length(forward.jvp(y))
            total = tf.reduce_sum(tf.math.log(slopes + 1e-30))
        for variable, gradient in zip((x, direction), tape.gradient(total, [x, direction]), strict=True):
            share = length(variable) / (length(gradient) + 1e-30)
            variable.assign_add(rate * share[:, None, None] * gradient)
        return tf.reduce_max(slopes)

    return max(float(step(tf.constant(0.1 / (1 + n / 20), dtype))) for n in range(steps))


def spread_out(z):
    """`P Z`."""
    distances = tf.reduce_sum(tf.square(z[:, :, None] - z[:, None]), -1)
    return tf.matmul(tf.nn.softmax(-distances), z)


@pytest.mark.slow
@pytest.mark.parametrize(("places", "reached"), [(1, 1.0), (2, 0.68), (3, 0.57), (7, 0.35), (20, 0.2)])
def test_the_bound_for_places_holds_and_is_this_tight(places, reached):
    found = max(ascended(spread_out, (places, width)) for width in (1, 3))
    assert reached * (1 - 1e-9) <= found / places_bound(places) <= 1 + 1e-9


def test_the_bound_for_places_is_its_formula():
    def inverse(y):  # of x exp(x + 1)
        return scipy.special.lambertw(y / np.e).real

    for n in (1, 2, 3, 7, 64, 1024):
        second = np.sqrt(8 * inverse(n - 1) * (inverse(n - 1) + (n - 1) * inverse(1)))
        assert places_bound(n) == pytest.approx(np.sqrt((n + 1) / 2) + second, rel=1e-12)
        # No set of distances has a larger mean of squares than phi^-1(n - 1).
        squares = np.random.default_rng(n).exponential(2, size=(2000, n - 1))
        means = (squares * np.exp(-squares)).sum(1) / (1 + np.exp(-squares).sum(1))
        assert means.max() <= inverse(n - 1) + 1e-12
        # About half as large from 7 on as what rows give one by one, sqrt(n) (4 phi^-1(n - 1) + 1).
        assert places_bound(n) <= np.sqrt(n) * (4 * inverse(n - 1) + 1) * (1 if n < 7 else 0.53)


@pytest.mark.parametrize(
    ("places", "heads"),
    [
        (3, 2),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (7, 1), (7, 2))
        ),
    ],
)
def test_no_slope_is_above_one(places, heads):
    layer = layer_of((places, 4), heads)
    assert 0.1 < ascended(layer, (places, 4), size=0.5) <= 1


@pytest.mark.slow
def test_no_slope_is_above_one_in_float32_for_small_and_large_weights():
    for query, value, merge in ((1e-4, 1e-4, 1e-4), (1e3, 1e3, 1e3), (1e-4, 1e3, 1.0), (1e3, 1e-4, 1.0)):
        layer = layer_of((3, 4), 2, (query, value, merge), "float32")
        # Points at whose distances the softmax has slopes.
        found = ascended(layer, (3, 4), size=0.5 / query, steps=30, dtype=tf.float32)
        assert 0.1 < found <= 1
    layer = layer_of((3, 4), 2, (0.0, 0.0, 0.0), "float32")
    np.testing.assert_array_equal(layer(np.ones((2, 3, 4), np.float32)), np.zeros((2, 3, 4)))


@pytest.mark.parametrize("scale", [0.0, 1e-20, 1e-10])
def test_gradients_of_penalties_are_finite_where_weights_vanish(scale):
    layer, x = layer_of((3, 4), 2, (scale,) * 3, "float32"), tf.random.stateless_normal((2, 3, 4), [1, 2])
    with tf.GradientTape() as tape:
        with tf.GradientTape() as inner:
            inner.watch(x)
            total = tf.reduce_sum(tf.sin(layer(x) + 1))
        penalty = tf.reduce_sum(tf.square(inner.gradient(total, x) - 1))
    for gradient in tape.gradient(penalty, layer.trainable_variables):
        assert np.isfinite(gradient).all()


def test_a_single_place_reaches_the_constant():
    layer = L2SelfAttention(dtype="float64")
    layer.build((None, 1, 1))
    assert float(layer(np.ones((1, 1, 1)))[0, 0, 0]) ** 2 == pytest.approx(1, rel=1e-5)


def test_a_common_shift_moves_no_weights_in_float32():
    layer = layer_of((5, 4), 2, dtype="float32")
    x = np.float32(np.random.default_rng(0).integers(-8, 9, size=(2, 5, 4)) / 8)
    shift = np.float32([512, -256, 1024, 128])  # with no rounding
    moved = layer(x + shift) - layer(x)
    np.testing.assert_allclose(moved, np.broadcast_to(moved[:1, :1], moved.shape), atol=2e-4)


def test_the_first_weights_differ():
    layer = L2SelfAttention()
    layer.build((None, 3, 4))
    query, value, merge = (w.numpy() for w in layer.weights)
    assert np.abs(query - value).max() > 0.1 < np.abs(value - merge).max()


def test_half_precision_takes_weights_and_norms_in_float32():
    layer, half = (layer_of((5, 4), 2, dtype=dtype) for dtype in ("float32", "mixed_bfloat16"))
    x = np.float32(np.random.default_rng(0).normal(size=(2, 5, 4)))
    assert half(x).dtype == tf.bfloat16
    np.testing.assert_allclose(tf.cast(half(x), tf.float32), layer(x), atol=0.02)
