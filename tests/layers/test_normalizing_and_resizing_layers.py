"""Layers of ganlab.layers compute the same as Keras' own, and their second derivatives are right."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from central_differences import departure

from ganlab import layers
from ganlab.functional import moments, named_weights, resize
from ganlab.lipschitz import certificate

IMAGE = (6, 5, 4)

# A layer of ganlab, that of Keras, and a shape that both accept.
PAIRS = {
    "layer-dense": (layers.LayerNormalization, keras.layers.LayerNormalization, {}, (6,)),
    "layer-image": (layers.LayerNormalization, keras.layers.LayerNormalization, {"axis": [1, 2, 3]}, IMAGE),
    "layer-channels": (layers.LayerNormalization, keras.layers.LayerNormalization, {"epsilon": 1e-2}, IMAGE),
    "layer-mixed-axes": (layers.LayerNormalization, keras.layers.LayerNormalization, {"axis": [-1, 1]}, IMAGE),
    "layer-offset-alone": (layers.LayerNormalization, keras.layers.LayerNormalization, {"scale": False}, (6,)),
    "layer-scale-alone": (layers.LayerNormalization, keras.layers.LayerNormalization, {"center": False}, (6,)),
    "group-dense": (layers.GroupNormalization, keras.layers.GroupNormalization, {"groups": 2}, (6,)),
    "group-image": (layers.GroupNormalization, keras.layers.GroupNormalization, {"groups": 2}, IMAGE),
    "group-one": (layers.GroupNormalization, keras.layers.GroupNormalization, {"groups": 1}, IMAGE),
    "group-first-axis": (layers.GroupNormalization, keras.layers.GroupNormalization, {"groups": 3, "axis": 1}, IMAGE),
    "group-volume": (layers.GroupNormalization, keras.layers.GroupNormalization, {"groups": 2}, (3, 2, 3, 4)),
    "instance": (layers.InstanceNormalization, lambda **k: keras.layers.GroupNormalization(groups=-1, **k), {}, IMAGE),
    **{
        f"up-{kind}": (layers.UpSampling2D, keras.layers.UpSampling2D, {"size": (2, 3), "interpolation": kind}, IMAGE)
        for kind in ("nearest", "bilinear", "bicubic", "lanczos3")
    },
    **{
        f"resize-{kind}-{'x'.join(map(str, size))}{'-antialias' * antialias}": (
            layers.Resizing,
            keras.layers.Resizing,
            {"height": size[0], "width": size[1], "interpolation": kind, "antialias": antialias},
            IMAGE,
        )
        for kind, size, antialias in (
            ("bilinear", (9, 11), False),
            ("bilinear", (3, 2), False),
            ("bilinear", (3, 2), True),
            ("bilinear", (6, 5), False),
            ("nearest", (4, 7), False),
            ("bicubic", (9, 3), False),
            ("area", (9, 3), False),
        )
    },
}
# Tested in a float64 critic under a penalty on slopes; the others of the table share their code.
TWICE = (
    *("layer-dense", "layer-image", "group-dense", "group-image", "instance", "up-bilinear", "up-bicubic"),
    *("resize-bilinear-3x2-antialias", "resize-nearest-4x7", "resize-area-9x3"),
)


def examples(shape, dtype=tf.float32):
    return 1.0 + 2.0 * tf.random.stateless_normal((3, *shape), [1, 2], dtype=dtype)


def set_weights(model, seed=0):
    random = np.random.default_rng(seed)
    model.set_weights([random.normal(size=v.shape) for v in model.weights])


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("name", PAIRS)
def test_output_is_that_of_keras(name, dtype):
    mine, theirs, arguments, shape = PAIRS[name]
    pair = mine(dtype=dtype, **arguments), theirs(dtype=dtype, **arguments)
    for layer in pair:
        layer.build((None, *shape))
        set_weights(layer)
    x = examples(shape)
    found, expected = (layer(x) for layer in pair)
    assert [v.name for v in pair[0].weights] == [v.name for v in pair[1].weights]
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert pair[0](keras.Input(shape)).shape == (None, *expected.shape[1:])
    # Of 1e0: rounding of float32, or of one unit in the last place of bfloat16.
    rounding = 3e-6 if dtype == "float32" else 2.0**-7
    found, expected = tf.cast(found, tf.float64), tf.cast(expected, tf.float64)
    np.testing.assert_allclose(found, expected, rtol=rounding, atol=rounding)


@pytest.mark.parametrize("name", ["layer-image", "group-image", "instance", "up-bilinear", "resize-bilinear-3x2"])
def test_layers_survive_saving(name, tmp_path):
    mine, _, arguments, shape = PAIRS[name]
    model = keras.Sequential([keras.Input(shape), mine(**arguments)])
    set_weights(model)
    model.save(tmp_path / "model.keras")
    np.testing.assert_array_equal(
        keras.models.load_model(tmp_path / "model.keras")(examples(shape)), model(examples(shape))
    )


@pytest.mark.parametrize("name", ["up-bilinear", "resize-bilinear-3x2"])
def test_channels_may_come_first(name):
    mine, theirs, arguments, (height, width, channels) = PAIRS[name]
    x = examples((channels, height, width))
    arguments = {**arguments, "data_format": "channels_first"}
    np.testing.assert_allclose(mine(**arguments)(x), theirs(**arguments)(x), rtol=3e-6, atol=3e-6)
    assert mine(**arguments)(keras.Input(x.shape[1:])).shape[1:] == theirs(**arguments)(x).shape[1:]


def critic_of(layer, shape):
    """A critic with smooth units around a layer."""
    units = keras.layers.Dense if len(shape) == 1 else keras.layers.Conv2D
    size = {} if len(shape) == 1 else {"kernel_size": 3, "padding": "same"}
    model = keras.Sequential(
        [
            keras.Input(shape, dtype="float64"),
            units(shape[-1], activation="tanh", dtype="float64", **size),
            layer,
            units(4, activation="tanh", dtype="float64", **size),
            *([keras.layers.Flatten(dtype="float64")] if len(shape) > 1 else []),
            keras.layers.Dense(1, dtype="float64"),
        ]
    )
    random = np.random.default_rng(0)
    model.set_weights([0.3 * random.normal(size=v.shape) + (v.name == "gamma") for v in model.weights])
    return model


@pytest.mark.parametrize("name", TWICE)
def test_penalty_gradients_agree_with_central_differences(name):
    mine, _, arguments, shape = PAIRS[name]
    critic = critic_of(mine(dtype="float64", **arguments), shape)
    # Central differences of step 1e-5 leave about 1e-10 of truncation and of rounding each.
    assert departure(critic, examples(shape, tf.float64)) < 1e-6


@pytest.mark.parametrize("kind", [keras.layers.LSTM, keras.layers.SimpleRNN])
def test_penalty_gradients_of_recurrent_layers(kind):
    # Without dropout they are accepted, so they must be right.
    critic = keras.Sequential(
        [keras.Input((3, 2), dtype="float64"), kind(3, dtype="float64"), keras.layers.Dense(1, dtype="float64")]
    )
    assert departure(critic, examples((3, 2), tf.float64)) < 1e-6


def test_moments_are_numpys():
    x = examples(IMAGE, tf.float64)
    mean, variance = moments(x, [1, 3])
    np.testing.assert_allclose(mean, x.numpy().mean((1, 3), keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(variance, x.numpy().var((1, 3), keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("method", ["bilinear", "bicubic", "nearest", "area", "gaussian", "mitchellcubic", "lanczos5"])
@pytest.mark.parametrize("antialias", [False, True])
def test_resize_is_tensorflows(method, antialias):
    x = examples(IMAGE)
    expected = tf.image.resize(x, (4, 9), method=method, antialias=antialias)
    np.testing.assert_allclose(resize(x, (4, 9), method, antialias=antialias), expected, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("shape", [(3,), (1, 1, 3)])
def test_groups_of_single_numbers_are_refused(shape):
    with pytest.raises(ValueError, match=r"single number.*ganlab\.layers\.LayerNormalization"):
        layers.InstanceNormalization()(keras.Input(shape))
    with pytest.raises(ValueError, match="single number"):
        layers.GroupNormalization(groups=3)(keras.Input(shape))


@pytest.mark.parametrize(
    "name", ["layer-dense", "group-image", "instance", "up-nearest", "up-bilinear", "resize-area-9x3"]
)
def test_certificates_hold(name):
    mine, _, arguments, shape = PAIRS[name]
    model = keras.Sequential([keras.Input(shape), mine(**arguments)])
    bound = certificate(model)({name: v.numpy() for name, v in named_weights(model).items()})
    x = examples(shape)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = model(x)
    jacobians = tape.batch_jacobian(y, x).numpy().reshape(len(x), int(np.prod(y.shape[1:])), -1)
    largest = np.linalg.norm(jacobians, 2, axis=(1, 2)).max()
    assert largest <= bound * (1 + 1e-6)
    if name.startswith(("resize", "up")):
        assert largest >= bound * (1 - 1e-5)
