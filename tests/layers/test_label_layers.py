"""Layers that take labels, against numpy in float64."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from central_differences import departure

from ganlab import layers
from ganlab.functional import named_weights
from ganlab.lipschitz import certificate, operators

CLASSES = 3
LABELS = np.array([2, 0, 2, 1, 0])
BETWEEN = np.array([[0.25, 0.75, 0.0], [1, 0, 0], [0, 0, 1], [0.5, 0, 0.5], [0, 1, 0]])
KINDS = {
    "embedding": (lambda **k: layers.LabelEmbedding(4, **k), None),
    "head": (layers.ProjectionHead, (6,)),
    "batch": (layers.ConditionalBatchNormalization, (3, 2, 4)),
    "layer": (layers.ConditionalLayerNormalization, (3, 2, 4)),
}


def built(kind, dtype="float64", inputs="float64", **arguments):
    """A model of one layer, with random weights and statistics, and examples."""
    make, shape = KINDS[kind]
    layer = make(dtype=dtype, name="layer", **arguments)
    label = keras.Input((), dtype="int64") if arguments.get("classes") else keras.Input((CLASSES,), dtype=inputs)
    x = keras.Input(shape, dtype=inputs) if shape else None
    model = keras.Model([x, label], layer([x, label])) if shape else keras.Model(label, layer(label))
    random = np.random.default_rng(0)
    model.set_weights([random.uniform(0.5, 1.5, size=v.shape) for v in model.weights])
    return model, layer, 2 + random.normal(size=(5, *(shape or ())))


def called(model, x, labels, **arguments):
    return model([x, labels] if len(model.inputs) == 2 else labels, **arguments).numpy()


def expected(layer, x, weights, training=False):
    """The same by numpy, with the weights of classes."""
    table = {v.name: v.numpy() for v in layer.weights}
    if isinstance(layer, layers.LabelEmbedding):
        return weights @ table["kernel"]
    if isinstance(layer, layers.ProjectionHead):
        score, embedding = layer.score.kernel.numpy(), layer.label_embedding.kernel.numpy()
        return x @ score + layer.score.bias.numpy() + np.sum(x * (weights @ embedding), axis=1, keepdims=True)
    if isinstance(layer, layers.ConditionalLayerNormalization):
        mean, variance = x.mean((1, 2, 3), keepdims=True), x.var((1, 2, 3), keepdims=True)
    elif training:
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    else:
        mean, variance = table["moving_mean"], table["moving_variance"]
    y = (x - mean) / np.sqrt(variance + layer.epsilon)
    gain, bias = (weights @ table[name].reshape(CLASSES, -1) for name in ("gamma", "beta"))
    return y * gain[:, None, None] + bias[:, None, None]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_and_weights_of_classes_give_what_numpy_gives(kind, training):
    model, layer, x = built(kind)
    of_numbers, numbered, _ = built(kind, classes=CLASSES)
    for used, layer_of, labels, weights in (
        (model, layer, BETWEEN, BETWEEN),
        (of_numbers, numbered, LABELS, np.eye(CLASSES)[LABELS]),
    ):
        right = expected(layer_of, x, weights, training)
        np.testing.assert_allclose(called(used, x, labels, training=training), right, rtol=1e-12, atol=1e-12)


def test_moving_averages_follow_the_batch():
    model, layer, x = built("batch", momentum=0.9)
    mean, variance = layer.moving_mean.numpy(), layer.moving_variance.numpy()
    called(model, x, BETWEEN, training=True)
    np.testing.assert_allclose(layer.moving_mean, 0.9 * mean + 0.1 * x.mean((0, 1, 2)), rtol=1e-12)
    np.testing.assert_allclose(layer.moving_variance, 0.9 * variance + 0.1 * x.var((0, 1, 2)), rtol=1e-12)


@pytest.mark.parametrize("kind", ["batch", "layer"])
def test_gains_are_no_kernels_to_constraints(kind):
    model, _, _ = built(kind)
    assert all(len(weight.shape) == 1 for weight in named_weights(model).values())
    assert not operators(model, reshaped=True)


def test_the_heads_kernels_are_known_to_constraints():
    model, layer, _ = built("head")
    found = operators(model)
    assert set(found) == {"layer/score/kernel", "layer/label_embedding/kernel"}
    vector = np.arange(3.0)
    kernel = layer.label_embedding.kernel
    np.testing.assert_allclose(found["layer/label_embedding/kernel"].apply(kernel, vector), vector @ kernel.numpy())


@pytest.mark.parametrize("kind", KINDS)
def test_layers_with_labels_survive_saving(kind, tmp_path):
    model, _, x = built(kind, classes=CLASSES)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(called(loaded, x, LABELS), called(model, x, LABELS))


@pytest.mark.parametrize("kind", ["head", "batch", "layer"])
def test_mixed_precision_returns_the_compute_dtype(kind):
    model, layer, x = built(kind, dtype="mixed_bfloat16", inputs="float32")
    assert {v.dtype for v in layer.weights} == {"float32"}
    y = model([x.astype(np.float32), BETWEEN.astype(np.float32)])
    assert y.dtype == tf.bfloat16
    # Two roundings to eight bits, of numbers up to 20.
    np.testing.assert_allclose(tf.cast(y, tf.float64), expected(layer, x, BETWEEN), rtol=0.03, atol=0.1)


class AtLabels:
    """A critic `[x, labels]` as a function of x."""

    def __init__(self, model, labels):
        self._model, self._labels, self.trainable_variables = model, labels, model.trainable_variables

    def __call__(self, x):
        return self._model([x, self._labels])[:, 0]


def smooth_critic():
    """A float64 critic with both layers that a critic may have, and smooth units."""
    x, label = keras.Input((3, 2, 4), dtype="float64"), keras.Input((CLASSES,), dtype="float64")
    h = keras.layers.Conv2D(4, 2, activation="tanh", dtype="float64")(x)
    h = layers.ConditionalLayerNormalization(dtype="float64")([h, label])
    h = keras.layers.Activation("tanh", dtype="float64")(h)
    h = keras.layers.Flatten(dtype="float64")(h)
    model = keras.Model([x, label], layers.ProjectionHead(dtype="float64")([h, label]))
    random = np.random.default_rng(2)
    model.set_weights([0.3 * random.normal(size=v.shape) + (v.name == "gamma") for v in model.weights])
    return model


def test_penalty_gradients_with_labels_agree_with_central_differences():
    critic = AtLabels(smooth_critic(), tf.constant(BETWEEN))
    # As for layers without labels: 1e-10 of truncation and of rounding each.
    assert departure(critic, tf.random.stateless_normal((5, 3, 2, 4), [1, 2], dtype=tf.float64)) < 1e-6


def test_the_certificate_holds_for_every_label():
    model = smooth_critic()
    bound = certificate(model)({name: v.numpy() for name, v in named_weights(model).items()})
    head, label = model.layers[-1], tf.eye(CLASSES, dtype=tf.float64)
    # Linear in the features, so that the largest slope of the head alone is reached.
    alone = [np.linalg.norm(head.score.kernel.numpy()[:, 0] + row) for row in head.label_embedding.kernel.numpy()]
    x, y = keras.Input(head.input[0].shape[1:]), keras.Input((CLASSES,))
    head_model = keras.Model([x, y], head([x, y]))
    kernels = {name: v.numpy() for name, v in named_weights(head_model).items()}
    assert certificate(head_model)(kernels) == pytest.approx(max(alone), rel=1e-12)
    for seed in range(5):
        x = tf.random.stateless_normal((CLASSES, 3, 2, 4), [seed, 1], dtype=tf.float64)
        with tf.GradientTape() as tape:
            tape.watch(x)
            scores = model([x, label])
        slopes = np.linalg.norm(tape.gradient(scores, x).numpy().reshape(CLASSES, -1), axis=1)
        assert 0 < slopes.max() <= bound


def test_labels_that_vary_with_the_example_have_no_bound():
    x = keras.Input((CLASSES,))
    model = keras.Model(x, layers.ProjectionHead()([x, x]))
    assert certificate(model)({name: v.numpy() for name, v in named_weights(model).items()}) == np.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: layers.LabelEmbedding(0), r"LabelEmbedding\(units=0\): it must be at least 1"),
        (lambda: layers.LabelEmbedding(2)(keras.Input((), dtype="int64")), r"classes=None\) got labels of shape"),
        (
            lambda: layers.LabelEmbedding(2, classes=4)(keras.Input((3,))),
            r"classes=4\) got labels of shape \(None, 3\)",
        ),
        (lambda: layers.ProjectionHead()(keras.Input((3,))), r"call it on a list of its input and labels"),
        (lambda: layers.ProjectionHead()([keras.Input((2, 3)), keras.Input((3,))]), r"must be vectors \(n, d\)"),
        (
            lambda: layers.ConditionalLayerNormalization()([keras.Input((None,)), keras.Input((3,))]),
            r"the length of axis -1 must be known",
        ),
    ],
)
def test_misuse_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
