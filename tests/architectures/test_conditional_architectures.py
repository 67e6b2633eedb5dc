"""Architectures that take labels, and self-attention in the residual networks."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from making import architecture as make

import ganlab
from ganlab import layers

CLASSES = 3
IMAGE = (8, 8, 1)
SMALL = {
    **{
        f"{name}-{labels}": (name, {**sizes, "labels": labels}, shape)
        for labels in ("projection", "concatenation", "classifier")
        for name, sizes, shape in (
            ("mlp", {"width": 8, "depth": 2}, (2,)),
            ("dcgan", {"channels": 4, "latent_dim": 6}, IMAGE),
            ("resnet", {"channels": 3, "latent_dim": 6}, (32, 32, 1)),
            ("sndcgan", {"channels": 4, "latent_dim": 6}, (16, 16, 1)),
        )
    },
    "resnet-layer": (
        "resnet",
        {"channels": 3, "latent_dim": 6, "labels": "projection", "generator_normalization": "layer"},
        (32, 32, 1),
    ),
    "resnet-none": (
        "resnet",
        {"channels": 3, "latent_dim": 6, "labels": "projection", "generator_normalization": "none"},
        (32, 32, 1),
    ),
    "resnet-attention": (
        "resnet",
        {"channels": 8, "latent_dim": 6, "labels": "projection", "attention": 8},
        (32, 32, 1),
    ),
}
# Each architecture, each way to take labels and attention; other pairs of them are slow.
QUICK = {
    *("mlp-projection", "mlp-concatenation", "mlp-classifier", "dcgan-projection", "dcgan-classifier"),
    *("resnet-concatenation", "resnet-attention", "sndcgan-classifier"),
}
small = pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case in QUICK else pytest.mark.slow) for case in SMALL]
)


@functools.cache
def built(case):
    """Both networks with random weights, so that no embedding and no gamma is zero."""
    name, arguments, shape = SMALL[case]
    keras.utils.set_random_seed(1)
    architecture = make(name, **arguments)
    generator, critic = architecture.generator(shape, CLASSES), architecture.critic(shape, CLASSES)
    random = np.random.default_rng(0)
    for variable in generator.trainable_variables + critic.trainable_variables:
        variable.assign(variable + 0.2 * random.normal(size=variable.shape))
    return architecture, generator, critic, shape


def normal(shape, seed=0):
    return tf.random.stateless_normal(shape, [seed, 1])


def outputs(critic, x, labels):
    y = critic([x, labels], training=True)
    return y if isinstance(y, dict) else {"score": y}


@small
def test_a_score_depends_on_its_own_example_and_label_alone(case):
    _, _, critic, shape = built(case)
    x, labels = normal((3, *shape)), tf.eye(CLASSES)
    found = outputs(critic, x, labels)
    alone = outputs(critic, x[:1], labels[:1])
    assert {name: y.shape[1:] for name, y in found.items()} == {
        "score": (1,),
        **({"logits": (CLASSES,)} if "classifier" in case else {}),
    }
    for name, y in found.items():
        np.testing.assert_allclose(y[:1], alone[name], rtol=1e-4, atol=1e-5)
    others = outputs(critic, x, labels[::-1])
    changed = np.abs(found["score"] - others["score"])[:, 0] > 1e-6
    # A label changes the score unless it is for the loss to use; the middle one stayed the same.
    assert changed.tolist() == ([False] * 3 if "classifier" in case else [True, False, True])


@small
def test_a_sample_depends_on_its_label(case):
    architecture, generator, _, shape = built(case)
    latent = normal((1, architecture.latent_dim))
    labels = tf.concat([tf.eye(CLASSES), [[0.5, 0.5, 0.0]]], 0)
    samples = generator([tf.repeat(latent, 4, axis=0), labels], training=False)
    assert samples.shape == (4, *shape)
    apart = [np.abs(samples[i] - samples[j]).max() for i in range(4) for j in range(i)]
    assert min(apart) > 1e-4


@small
def test_no_weight_of_a_conditional_generator_is_without_effect(case):
    architecture, generator, _, shape = built(case)
    labels = tf.one_hot(tf.range(16) % CLASSES, CLASSES)
    with tf.GradientTape() as tape:
        samples = generator([normal((16, architecture.latent_dim)), labels], training=True)
        loss = tf.reduce_sum(samples * normal((16, *shape), seed=2))
    gradients = tape.gradient(loss, [v.value for v in generator.trainable_variables])
    norms = {v.path: float(tf.norm(g)) for v, g in zip(generator.trainable_variables, gradients, strict=True)}
    assert min(norms.values()) > 1e-5 * max(norms.values()), norms


@pytest.mark.parametrize("name", ["dcgan", "resnet"])
def test_the_labels_planes_are_one_for_the_label_and_zero_elsewhere(name):
    _, _, critic, shape = built(f"{name}-concatenation")
    joined = keras.Model(critic.inputs, critic.get_layer("with_label").output)
    x = normal((2, *shape))
    found = joined([x, tf.one_hot([2, 0], CLASSES)]).numpy()
    np.testing.assert_array_equal(found[..., :1], x)
    np.testing.assert_array_equal(found[0, ..., 1:], np.broadcast_to([0.0, 0.0, 1.0], (*shape[:2], 3)))
    np.testing.assert_array_equal(found[1, ..., 1:], np.broadcast_to([1.0, 0.0, 0.0], (*shape[:2], 3)))


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        ("resnet-projection", layers.ConditionalBatchNormalization),
        ("resnet-layer", layers.ConditionalLayerNormalization),
        ("resnet-none", None),
    ],
)
def test_the_residual_blocks_normalize_by_label(case, kind):
    # Two in each of three blocks; the last normalization has no label, as in the authors' code.
    _, generator, _, _ = built(case)
    both = (layers.ConditionalBatchNormalization, layers.ConditionalLayerNormalization)
    names = [layer.name for layer in generator.layers if isinstance(layer, both)]
    assert names == ([f"block_{i}_{j}_normalization" for i in (1, 2, 3) for j in (1, 2)] if kind else [])
    assert all(isinstance(generator.get_layer(name), kind) for name in names)
    assert ("label_embedding" in [layer.name for layer in generator.layers]) == (kind is None)


def test_labels_leave_the_rest_of_the_networks_as_it_is():
    for name, arguments, shape in (("dcgan", {"channels": 2}, IMAGE), ("resnet", {"channels": 2}, (32, 32, 1))):
        plain, labelled = make(name, **arguments), make(name, **arguments, labels="projection")
        before = {v.path: v.shape for v in plain.critic(shape).variables if not v.path.startswith("score")}
        after = {v.path: v.shape for v in labelled.critic(shape, CLASSES).variables}
        assert {path: shape for path, shape in after.items() if not path.startswith("projection/")} == before


def test_the_projections_start_is_that_of_its_parts():
    # The weights of a seed, and so the runs that were trained, are those of a dense layer and an embedding of Keras.
    def by_hand(x, label):
        score = keras.layers.Dense(1)(x)
        start = keras.initializers.RandomNormal(stddev=x.shape[-1] ** -0.5)
        along = keras.layers.Dense(x.shape[-1], use_bias=False, kernel_initializer=start)(label)
        return keras.layers.Add()([score, keras.layers.Dot(axes=1)([x, along])])

    found = []
    for end in (by_hand, lambda x, label: layers.ProjectionHead()([x, label])):
        keras.utils.set_random_seed(3)
        x, label = keras.Input((6,)), keras.Input((CLASSES,))
        model = keras.Model([x, label], end(x, label))
        found.append(model([normal((4, 6)), tf.one_hot([0, 2, 1, 2], CLASSES)]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("side", "attention", "channels"), [(32, 16, (2, 2)), (64, 32, (4, 2)), (128, 32, (8, 4))])
def test_attention_is_in_both_networks_at_its_side(side, attention, channels):
    resnet = make("resnet", channels=2, latent_dim=3, attention=attention)
    for network, expected in zip(
        (resnet.generator((side, side, 3)), resnet.critic((side, side, 3))), channels, strict=True
    ):
        found = [layer for layer in network.layers if isinstance(layer, layers.SelfAttention)]
        assert [layer.output.shape[1:] for layer in found] == [(attention, attention, expected)]


@pytest.mark.parametrize(
    ("name", "arguments", "shape", "message"),
    [
        ("dcgan", {"labels": "projection"}, IMAGE, r"architectures\.dcgan\.labels needs a dataset with classes"),
        ("resnet", {"labels": "classifier"}, (32, 32, 1), r"resnet\.labels needs a dataset with classes"),
        ("resnet", {"attention": 32}, (32, 32, 1), r"attention = 32 must be the side .*: 8, 16 for images of 32"),
        ("resnet", {"attention": 12}, (64, 64, 1), r"resnet\.attention = 12 must be the side .*: 8, 16, 32 for"),
    ],
)
def test_what_cannot_be_built_is_refused_by_name(name, arguments, shape, message):
    architecture = make(name, **arguments)
    for method in (architecture.generator, architecture.critic):
        with pytest.raises((ganlab.IncompatibleError, ganlab.ConfigError), match=message):
            method(shape)
