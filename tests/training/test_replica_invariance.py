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
@pytest.mark.parametrize("replicas", [1, 2, pytest.param(4, marks=pytest.mark.slow)])
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


@pytest.mark.parametrize(
    "parts",
    [
        {
            "architecture": Layers(generator=normalized_generator, critic=dropping_critic),
            "loss": "hinge",
            "ema_decay": 0.9,
            "critic_steps": 3,
            "constraints": ["gradient_penalty"],
        },
        {
            "constraints": ["spectral_norm", "gradient_penalty"],
            "critic_optimizer": "adam",
            "generator_optimizer": "adam",
        },
    ],
    ids=["normalized generator, dropout, hinge, average, 3 updates", "a stack under Adam"],
)
def test_no_other_part_depends_on_the_number_of_replicas(parts):
    def built():
        made = dict(parts)
        made["constraints"] = [constraint(name) for name in parts["constraints"]]
        if "loss" in parts:
            made["loss"] = ganlab.component("losses", parts["loss"])()
        for part in ("critic_optimizer", "generator_optimizer"):
            if part in parts:
                # A gradient that is zero up to rounding must not become a full step.
                made[part] = ganlab.component("optimizers", parts[part])(learning_rate=1e-3, epsilon=1e-4)
        return made

    one, two = trained(0, **built()), trained(2, **built())

    assert_same(one, two)
    before = values(TrainingState(small(0, **built())))
    moved = [name for name in one.values if not np.array_equal(one.values[name], before[name])]
    assert any("generator/weights" in name for name in moved)
    assert any("critic/weights" in name for name in moved)
    for group in ("generator/average", "generator/buffers"):
        assert all(name in moved for name in one.values if name.startswith(group))
