"""Losses and augmentations train the same compiled and in microbatches, and layers with labels on replicas.

Each component does on replicas by the kit: tests/conformance.
"""

import keras
import pytest
from making import component as made
from small import assert_same, constraint, small, trained

import ganlab
from ganlab import layers
from ganlab.functional import call
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")


# Those that compare the examples of the global batch, which microbatches do not know.
OF_SCORES = ("c_transform", "max_sliced", "relativistic_average", "top_k")
OF_THE_BATCH = ("cramer", "d2d_ce", "feature_matching", "mmd", *OF_SCORES)
LAYERS = ("aoc", "bro", "lires")
OF_EXAMPLES = ("relativistic", "auxiliary_classifier", "multi_hinge")


class All(ganlab.Loss):
    """The sum of several losses, each logged, so that one training checks them all; the witness is the first one's."""

    pairs, labels = True, True

    def __init__(self, names, outputs):
        self.losses, self.outputs = {name: made("losses", name) for name in names}, outputs

    def witness(self, batch, replica):
        return call(next(iter(self.losses.values())).witness, batch, replica=replica)

    def critic(self, real_scores, fake_scores, batch, replica):
        return self._sum("critic", lambda each: [real_scores, fake_scores], batch, replica)

    def generator(self, fake_scores, real_scores, batch, replica):
        return self._sum("generator", lambda each: [fake_scores, real_scores][: 1 + each.pairs], batch, replica)

    def _sum(self, role, scores, batch, replica):
        values = []
        for name, each in self.losses.items():
            values.append(call(getattr(each, role), *scores(each), batch=batch, replica=replica, state={}))
            replica.log(f"{name} of {role}", values[-1])
        return sum(values)


def networks(**arguments):
    return made("architectures", "mlp", width=8, depth=1, latent_dim=3, activation="tanh", **arguments)


def case(name):
    """An experiment with many components of a kind. A fault of one is in the sum, which is held to a few roundings."""
    if name == "losses of the batch":
        return {
            "loss": All(OF_THE_BATCH, ("embedding", "proxy")),
            "architecture": networks(labels="proxy", embedding_dim=5),
            "constraints": [made("constraints", "gradient_penalty")],
        }
    if name == "losses of examples":
        return {"loss": All(OF_EXAMPLES, ("logits",)), "architecture": networks(labels="classifier")}
    if name in LAYERS:
        critic = made("architectures", "lip_convnet", channels=4, latent_dim=3, convolution=name)
        return {"dataset": made("datasets", "digits"), "architecture": critic}
    ada = made("augmentations", "ada", start=0.5, images=200.0, changes="rotate,turn,scale,contrast,saturation")
    augmentations = [made("augmentations", "diff_augment"), ada]
    return {"dataset": made("datasets", "digits"), "architecture": networks(), "augmentations": augmentations}


IN_PARTS = ("losses of examples", "augmentations")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["losses of the batch", *IN_PARTS, *LAYERS])
def test_new_components_train_the_same(name):
    plain = trained(0, count=3, **case(name))
    for given in [{"jit": "on"}, *([{"microbatches": 3}] if name in IN_PARTS else [])]:
        assert_same(plain, trained(0, count=3, **case(name), **given), rtol=3e-5, atol=3e-6)


@pytest.mark.parametrize(
    ("part", "name", "right"),
    [
        ("constraints", "mode_seeking", "generator_constraints"),
        ("constraints", "latent_step", "generator_constraints"),
        ("generator_constraints", "score_drift", "constraints"),
    ],
)
def test_a_constraint_of_the_other_network_is_refused(part, name, right):
    said = f"has no effect in experiment.{part}. Put it in experiment.{right}"
    with pytest.raises(ganlab.IncompatibleError, match=said):
        TrainingState(small(0, **{part: [made("constraints", name)]}))


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


def _centred():
    return lambda both: layers.BatchLipNorm(momentum=0.9)(both[0])


@pytest.mark.slow
@pytest.mark.parametrize("normalization", [layers.ConditionalLayerNormalization, _centred])
def test_layers_with_labels_train_the_same(normalization):
    parts = of_points(architecture=Conditional(normalization=normalization))
    one, two = (trained(replicas, count=4, **parts) for replicas in (0, 2))
    assert_same(one, two, rtol=3e-5, atol=3e-6)


@pytest.mark.parametrize(
    ("kind", "parts", "refusal"),
    [
        (layers.ConditionalLayerNormalization, {"microbatches": 2}, "takes statistics of the whole"),
        (layers.ConditionalBatchNormalization, {}, "mixes the examples of a batch"),
    ],
)
def test_layers_of_the_whole_batch_are_refused_by_name(kind, parts, refusal):
    with pytest.raises(ganlab.IncompatibleError, match=rf"\(ConditionalBatchNormalization\) {refusal}"):
        Trainer(small(0, **of_points(architecture=Conditional(normalization=kind), **parts)))
