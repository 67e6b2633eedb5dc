"""The sandwich layer: A and B in float32, the constant reached, and its activations."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from ganlab import lipschitz
from ganlab.layers import SandwichDense
from ganlab.layers.sandwich import ACTIVATIONS


def layer_of(inputs, units, kernel=1.0, skew=1.0, psi=1.0, **arguments):
    layer = SandwichDense(units, **arguments)
    layer.build((None, inputs))
    random = np.random.default_rng(0)
    for weight, scale in ((layer.kernel, kernel), (layer.skew, skew), (layer.log_psi, psi), (layer.bias, 1.0)):
        weight.assign(scale * random.normal(size=weight.shape))
    return layer


@pytest.mark.parametrize("shape", [(5, 5), (20, 4), (3, 12), (16, 64)])
def test_rows_of_both_factors_are_not_longer_than_one_in_float32(shape):
    sizes = [0.0, 1e-4, 1.0, 30.0, 1e3]
    for kernel, skew in itertools.product(sizes, sizes):
        a, b = (np.float64(part) for part in layer_of(*shape, kernel, skew).factors())
        eigenvalues = np.linalg.eigvalsh(a @ a.T + b @ b.T)
        assert eigenvalues[-1] < 1
        if (
            kernel < 1e3
        ):  # the equations of a large Y'Y of low rank are solved less exactly, and both made smaller by it
            assert eigenvalues[0] > 1 - 3e-3


def test_every_pattern_of_slopes_has_a_jacobian_of_norm_at_most_one():
    for kernel, skew, psi in ((0.4, 0.0, 0.0), (1.0, 1.0, 1.0), (1e3, 1e3, 3.0)):
        layer = layer_of(4, 6, kernel, skew, psi)
        a, b = (np.float64(part) for part in layer.factors())
        patterns = np.array(list(itertools.product((0, 1), repeat=6)))
        jacobians = 2 * np.einsum("ij,pi,ik->pjk", a, patterns, b)
        assert np.linalg.norm(jacobians, 2, axis=(1, 2)).max() <= 1


@pytest.mark.slow
def test_the_constant_is_reached_by_ascent_of_the_weights():
    layer = layer_of(4, 6, activation="linear")
    optimizer = keras.optimizers.Adam(0.02)
    weights = [layer.kernel, layer.skew]
    for _ in range(150):
        with tf.GradientTape() as tape:
            a, b = layer.factors()
            loss = -tf.linalg.svd(2 * tf.matmul(a, b, transpose_a=True), compute_uv=False)[0]
        optimizer.apply(tape.gradient(loss, [w.value for w in weights]), weights)
    x = np.float32(np.random.default_rng(1).normal(size=4))
    jacobian = np.transpose(layer(np.eye(4, dtype=np.float32) + x) - layer(x[None]))
    assert 0.999 < np.linalg.norm(np.float64(jacobian), 2) <= 1 + 1e-6  # of differences in float32


def test_it_starts_as_an_orthogonal_map_and_its_activation():
    layer, x = SandwichDense(4), np.float32(np.random.default_rng(0).normal(size=(3, 6)))
    y = layer(x)
    a, b = layer.factors()
    np.testing.assert_allclose(np.sqrt(2) * a, np.eye(4), atol=1e-5)
    np.testing.assert_allclose(2 * b @ tf.transpose(b), np.eye(4), atol=1e-5)
    np.testing.assert_allclose(y, np.maximum(np.sqrt(2) * x @ np.transpose(b), 0), atol=1e-5)


def test_activations_are_all_those_with_slopes_from_zero_to_one():
    known = lipschitz.ACTIVATION_SLOPES.items()
    assert set(ACTIVATIONS) == {name for name, (least, steepest) in known if least >= 0 and steepest <= 1}
    x = np.linspace(-8, 8, 16001)
    for name in ACTIVATIONS:
        slopes = np.diff(getattr(keras.activations, name)(tf.constant(x))) / np.diff(x)
        assert slopes.min() >= 0
        assert slopes.max() <= 1 + 1e-9
    assert SandwichDense(2, keras.activations.tanh).get_config()["activation"] == "tanh"


@pytest.mark.parametrize("activation", ["gelu", "silu", "celu", "softmax", lambda x: x])
def test_other_activations_are_refused(activation):
    with pytest.raises(ValueError, match=r"SandwichDense\(activation=.*slopes must be known to be between"):
        SandwichDense(2, activation)


def test_half_precision_solves_its_equations_in_float32():
    layer, half = layer_of(5, 6), layer_of(5, 6, dtype="mixed_bfloat16")
    for one, other in zip(layer.factors(), half.factors(), strict=True):
        np.testing.assert_array_equal(one, other)
    x = np.float32(np.random.default_rng(0).normal(size=(2, 3, 5)))
    assert half(x).dtype == tf.bfloat16
    assert half.compute_output_shape((2, 3, 5)) == (2, 3, 6)
    np.testing.assert_allclose(tf.cast(half(x), tf.float32), layer(x), atol=0.05)
