"""Losses, constraints and augmentations of contract 2 train the same on replicas, compiled and in microbatches."""

import pytest
from small import assert_same, small, trained

import ganlab
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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["relativistic", "relativistic_average", "auxiliary_classifier", "multi_hinge"])
def test_losses(name):
    classes = name in ("auxiliary_classifier", "multi_hinge")
    labels = "classifier" if classes else "projection"
    mlp = made("architectures", "mlp", width=8, depth=1, latent_dim=3, activation="tanh", labels=labels)
    parts = {"loss": made("losses", name), "architecture": mlp}
    one = trained(0, count=3, **parts)
    # A mean over the global batch knows no microbatches.
    for replicas, others in WAYS if name != "relativistic_average" else WAYS[:3]:
        assert_same(one, trained(replicas, count=3, **parts, **others), rtol=3e-5, atol=3e-6)


@pytest.mark.slow
def test_diff_augment():
    parts = {
        "dataset": made("datasets", "digits"),
        "architecture": made("architectures", "mlp", width=8, depth=1, latent_dim=3, activation="tanh"),
        "augmentations": [made("augmentations", "diff_augment")],
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
