"""Losses, constraints and augmentations of contract 2 train the same on replicas, compiled and in microbatches."""

import pytest
import tensorflow as tf
from small import assert_same, small, trained

import ganlab
from ganlab.functional import call
from ganlab.training.graph.state import TrainingState

pytestmark = pytest.mark.usefixtures("cpus")


def made(kind, name, **arguments):
    return ganlab.component(kind, name)(**arguments)


WAYS = ((2, {}), (4, {}), (0, {"jit": "on"}), (2, {"microbatches": 3}))

CRITICS = {"fisher": {"rho": 0.1}, "sobolev": {"rho": 0.1}, "lecam": {}, "score_drift": {}, "latent_consistency": {}}
GENERATORS = {"latent_consistency": {}, "latent_step": {}, "mode_seeking": {}, "path_length": {"every": 2}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "name"),
    [*(("constraints", name) for name in CRITICS), *(("generator_constraints", name) for name in GENERATORS)],
)
def test_constraints(part, name):
    arguments = (CRITICS if part == "constraints" else GENERATORS)[name]
    parts = {part: [made("constraints", name, **arguments)], "critic_steps": 2}
    one = trained(0, count=3, **parts)
    for replicas, others in WAYS:
        assert_same(one, trained(replicas, count=3, **parts, **others), rtol=3e-5, atol=3e-6)


# Those that compare the examples of the global batch, which microbatches do not know.
OF_THE_BATCH = ("c_transform", "cramer", "d2d_ce", "feature_matching", "mmd", "relativistic_average", "top_k")
LABELS = {"auxiliary_classifier": "classifier", "multi_hinge": "classifier", "d2d_ce": "proxy"}


def networks(labels="projection"):
    return made(
        "architectures",
        "mlp",
        width=8,
        depth=1,
        latent_dim=3,
        activation="tanh",
        labels=labels,
        embedding_dim=5,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["relativistic", "auxiliary_classifier", "multi_hinge", *OF_THE_BATCH])
def test_losses(name):
    parts = {"loss": made("losses", name), "architecture": networks(LABELS.get(name, "projection"))}
    one = trained(0, count=3, **parts)
    for replicas, others in WAYS[:3] if name in OF_THE_BATCH else WAYS:
        assert_same(one, trained(replicas, count=3, **parts, **others), rtol=3e-5, atol=3e-6)


class All(ganlab.Loss):
    """The sum of several losses, so that one training checks them all; the witness is that of the first."""

    pairs, labels, outputs = True, True, ("embedding", "proxy")

    def __init__(self, losses):
        self.losses = losses

    def witness(self, batch, replica):
        return self.losses[0].witness(batch, replica)

    def critic(self, real_scores, fake_scores, batch, replica):
        given = {"batch": batch, "replica": replica, "state": {}}
        return tf.add_n([call(each.critic, real_scores, fake_scores, **given) for each in self.losses])

    def generator(self, fake_scores, real_scores, batch, replica):
        given = {"batch": batch, "replica": replica, "state": {}}
        scores = [(fake_scores, real_scores)[: 1 + each.pairs] for each in self.losses]
        return tf.add_n([call(each.generator, *s, **given) for each, s in zip(self.losses, scores, strict=True)])


@pytest.mark.parametrize("way", [(2, {}), pytest.param((4, {}), marks=pytest.mark.slow)], ids=["2", "4"])
def test_losses_of_the_global_batch_train_the_same_on_replicas(way, all_on_one):
    replicas, others = way
    assert_same(all_on_one, trained(replicas, count=3, **all_losses(), **others), rtol=3e-5, atol=3e-6)


def all_losses():
    return {
        "loss": All([made("losses", name) for name in ("cramer", *(n for n in OF_THE_BATCH if n != "cramer"))]),
        "architecture": networks("proxy"),
        "constraints": [made("constraints", "gradient_penalty")],
    }


@pytest.fixture(scope="module")
def all_on_one(cpus):
    return trained(0, count=3, **all_losses())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "arguments"), [("diff_augment", {}), ("ada", {"start": 0.5, "images": 200.0})])
def test_augmentations(name, arguments):
    parts = {
        "dataset": made("datasets", "digits"),
        "architecture": made("architectures", "mlp", width=8, depth=1, latent_dim=3, activation="tanh"),
        "augmentations": [made("augmentations", name, **arguments)],
    }
    one = trained(0, count=3, **parts)
    for replicas, others in WAYS:
        assert_same(one, trained(replicas, count=3, **parts, **others), rtol=3e-5, atol=3e-6)


@pytest.mark.parametrize(
    ("part", "name", "right"),
    [("constraints", "mode_seeking", "generator_constraints"), ("generator_constraints", "score_drift", "constraints")],
)
def test_a_constraint_of_the_other_network_is_refused(part, name, right):
    with pytest.raises(
        ganlab.IncompatibleError, match=f"has no effect in experiment.{part}. Put it in experiment.{right}"
    ):
        TrainingState(small(0, **{part: [made("constraints", name)]}))
