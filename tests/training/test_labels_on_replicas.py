"""Layers with labels, and the architectures that have them, train the same on any number of replicas."""

import keras
import pytest
from small import assert_same, constraint, small, trained

import ganlab
from ganlab import layers
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")

REPLICAS = pytest.mark.parametrize("replicas", [2, pytest.param(4, marks=pytest.mark.slow)])


class Conditional(ganlab.Architecture):
    """Each layer for labels once, those of the generator by numbers and the critic's by weights of classes."""

    conditional = True
    latent_dim = 3

    def __init__(self, *, normalization=layers.ConditionalLayerNormalization):
        self._normalization = normalization

    def generator(self, sample_shape, classes):
        z, y = keras.Input((3,)), keras.Input((), dtype="int64")
        h = keras.layers.Concatenate()([z, layers.LabelEmbedding(2, classes)(y)])
        h = keras.layers.Dense(8, use_bias=False)(h)
        h = layers.ConditionalBatchNormalization(classes, momentum=0.9)([h, y])
        return keras.Model([z, y], keras.layers.Dense(2)(keras.layers.Activation("tanh")(h)))

    def critic(self, sample_shape, classes):
        x, y = keras.Input(sample_shape), keras.Input((classes,))
        h = self._normalization()([keras.layers.Dense(8)(x), y])
        h = keras.layers.Dense(8, activation="tanh")(keras.layers.Activation("tanh")(h))
        return keras.Model([x, y], layers.ProjectionHead(dtype="float32")([h, y]))


def of_points(**parts):
    return {"architecture": Conditional(), "constraints": [constraint("gradient_penalty")], "critic_steps": 2, **parts}


@pytest.fixture(scope="module")
def one(cpus):
    return trained(0, count=4, **of_points())


@pytest.mark.slow
@REPLICAS
def test_layers_with_labels_train_the_same(one, replicas):
    assert_same(one, trained(replicas, count=4, **of_points()), rtol=3e-5, atol=3e-6)


def of_images(name):
    component = ganlab.component
    sizes = {"dcgan": {"channels": 2}, "resnet": {"channels": 8, "attention": 8}}[name]
    dataset = component("datasets", "digits")() if name == "dcgan" else component("datasets", "glyphs")(characters="AB")
    return {
        "dataset": dataset,
        "architecture": component("architectures", name)(latent_dim=3, labels="projection", **sizes),
        "loss": component("losses", "hinge")(),
        "constraints": [constraint("spectral_norm")],
        "generator_constraints": [constraint("spectral_norm")],
    }


slow = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "replicas"),
    [("dcgan", 2), pytest.param("dcgan", 4, marks=slow), pytest.param("resnet", 2, marks=slow)],
)
def test_architectures_with_labels_train_the_same(name, replicas):
    parts = of_images(name)
    # Some hundred rectifiers behind a batch normalization: rounding flips none of them in three iterations.
    assert_same(trained(0, count=3, **parts), trained(replicas, count=3, **parts), rtol=1e-4, atol=1e-5)


def test_microbatches_are_refused_by_the_layers_name():
    parts = of_points(microbatches=2, constraints=[])
    with pytest.raises(
        ganlab.IncompatibleError, match=r"\(ConditionalBatchNormalization\) takes statistics of the whole"
    ):
        Trainer(small(0, **parts))


def test_a_critic_under_a_penalty_may_not_mix_examples_by_label_either():
    parts = of_points(architecture=Conditional(normalization=layers.ConditionalBatchNormalization))
    with pytest.raises(
        ganlab.IncompatibleError, match=r"\(ConditionalBatchNormalization\) mixes the examples of a batch"
    ):
        Trainer(small(0, **parts))
