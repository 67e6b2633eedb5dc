"""The promise that everything else rests on: training does not depend on the number of replicas.

Mistakes of distribution, and how far they lead: tests/verification/test_mutants.py.
"""

import numpy as np
import pytest
from small import (
    Layers,
    assert_same,
    constraint,
    distance,
    dropping_critic,
    normalized_generator,
    small,
    trained,
    values,
)

import ganlab
from ganlab.training.graph.state import TrainingState

pytestmark = pytest.mark.usefixtures("cpus")


@pytest.fixture(scope="module")
def penalized(cpus):
    """A gradient penalty on one device."""
    return trained(0, constraints=[constraint("gradient_penalty")])


# Every constraint on 2 and 4 replicas: tests/conformance/test_first_party.py.
@pytest.mark.parametrize("replicas", [2, *(pytest.param(count, marks=pytest.mark.slow) for count in (1, 4))])
def test_weights_and_metrics_do_not_depend_on_the_number_of_replicas(penalized, replicas):
    other = trained(replicas, constraints=[constraint("gradient_penalty")])
    assert other.rows.shape == (20, replicas, penalized.rows.shape[2])
    assert_same(penalized, other)
    if replicas > 1:  # each replica sees its own examples
        assert np.ptp(other.metric("critic/wasserstein"), axis=1).min() > 1e-4


def test_the_reference_moves(penalized):
    # Equal weights prove nothing where training stands still.
    state = TrainingState(small(0))
    assert distance(penalized.still(values(state)), penalized) > 0.05


def with_layers():
    layers = Layers(generator=normalized_generator, critic=dropping_critic)
    averaged = {"loss": ganlab.component("losses", "hinge")(), "ema_decay": 0.9, "critic_steps": 3}
    return {"architecture": layers, "constraints": [constraint("gradient_penalty")], **averaged}


def stacked():
    # A gradient that is zero up to rounding must not become a full step.
    adam = ganlab.component("optimizers", "adam")(learning_rate=1e-3, epsilon=1e-4)
    return {"constraints": [constraint("spectral_norm"), constraint("gradient_penalty")], "optimizer": adam}


@pytest.mark.parametrize("built", [with_layers, pytest.param(stacked, marks=pytest.mark.slow)])
def test_no_other_part_depends_on_the_number_of_replicas(built):
    one, two = trained(0, **built()), trained(2, **built())

    assert_same(one, two)
    before = values(TrainingState(small(0, **built())))
    moved = [name for name in one.values if not np.array_equal(one.values[name], before[name])]
    assert any("generator/weights" in name for name in moved)
    assert any("critic/weights" in name for name in moved)
    for group in ("generator/average", "generator/buffers"):
        assert all(name in moved for name in one.values if name.startswith(group))
