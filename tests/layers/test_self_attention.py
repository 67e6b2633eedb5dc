"""Self-attention, against a loop in numpy."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from central_differences import departure

import ganlab
from ganlab.layers import SelfAttention
from ganlab.lipschitz import certificate, operators


def model_of(shape, dtype="float64", seed=0):
    x = keras.Input(shape, dtype=dtype)
    model = keras.Model(x, SelfAttention(name="attention", dtype=dtype)(x))
    random = np.random.default_rng(seed)
    model.set_weights([0.5 * random.normal(size=v.shape) for v in model.weights])
    return model, random.normal(size=(2, *shape))


def looped(x, query, key, value, merge, gamma):
    """Zhang et al. (2019), equations 1 to 3, place by place; keys and values are the maxima of 2 x 2 places."""
    height, width, _ = x.shape
    corners = [(i, j) for i in range(0, height, 2) for j in range(0, width, 2)]

    def pooled(kernel):
        return [np.max([x[a, b] @ kernel for a in (i, i + 1) for b in (j, j + 1) if a < height and b < width], axis=0)
                for i, j in corners]  # fmt: skip

    keys, values = pooled(key), pooled(value)
    y = np.empty_like(x)
    for i in range(height):
        for j in range(width):
            weights = np.exp([x[i, j] @ query @ k for k in keys])
            gathered = sum(w * v for w, v in zip(weights / weights.sum(), values, strict=True))
            y[i, j] = x[i, j] + gamma * (gathered @ merge)
    return y


@pytest.mark.parametrize("shape", [(4, 6, 16), (3, 5, 2)])
def test_the_output_is_that_of_a_loop(shape):
    model, x = model_of(shape)
    layer = model.layers[-1]
    kernels = [getattr(layer, name).kernel.numpy()[0, 0] for name in ("query", "key", "value", "merge")]
    assert [kernel.shape[1] for kernel in kernels] == [max(1, shape[2] // 8)] * 2 + [max(1, shape[2] // 2), shape[2]]
    right = np.stack([looped(row, *kernels, float(layer.gamma)) for row in x])
    np.testing.assert_allclose(model(x), right, rtol=1e-11, atol=1e-11)


def test_it_starts_as_the_identity():
    x = np.random.default_rng(0).normal(size=(2, 4, 4, 8)).astype(np.float32)
    np.testing.assert_array_equal(SelfAttention()(x), x)


def test_penalty_gradients_through_attention_agree_with_central_differences():
    x, activation = keras.Input((2, 4, 2), dtype="float64"), {"activation": "tanh", "dtype": "float64"}
    h = SelfAttention(dtype="float64")(keras.layers.Conv2D(4, 2, padding="same", **activation)(x))
    h = keras.layers.Flatten(dtype="float64")(keras.layers.Activation(**activation)(h))
    critic = keras.Model(x, keras.layers.Dense(1, dtype="float64")(h))
    random = np.random.default_rng(0)
    critic.set_weights([0.5 * random.normal(size=v.shape) + (v.name == "gamma") for v in critic.weights])
    # The maxima jump nowhere within the step of 1e-5 at these numbers.
    assert departure(critic, tf.random.stateless_normal((3, 2, 4, 2), [1, 2], dtype=tf.float64)) < 1e-6


def test_spectral_norm_divides_each_convolution():
    model, _ = model_of((4, 4, 16), dtype="float32")
    names = [f"attention/{name}/kernel" for name in ("query", "key", "value", "merge")]
    assert sorted(operators(model)) == sorted(operators(model, reshaped=True)) == sorted(names)
    for operator in ("matrix", "convolution"):
        constraint = ganlab.component("constraints", "spectral_norm")(operator=operator)
        constraint.prepare(model)
        weights = {v.path: v.value for v in model.trainable_variables}
        normalized = constraint.reparameterize(weights, constraint.initial_state(weights))
        norms = [np.linalg.norm(normalized[name].numpy()[0, 0], 2) for name in names]
        np.testing.assert_allclose(norms, 1.0, rtol=0.01)
        assert float(normalized["attention/gamma"]) == float(weights["attention/gamma"])


def test_it_has_no_certificate():
    model, _ = model_of((4, 4, 16))
    assert "'attention' (SelfAttention): products of its queries and keys" in certificate(model).missing


def test_attention_survives_saving(tmp_path):
    model, x = model_of((4, 4, 16))
    model.save(tmp_path / "model.keras")
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "model.keras")(x), model(x))
