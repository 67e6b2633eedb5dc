"""The constraints on gradients that take something from the whole batch, or from noise, on 1, 2 and 4 replicas."""

import numpy as np
import pytest
from small import assert_same, constraint, distance, small, trained, values

import ganlab
from ganlab.training.graph.replica import ReplicaView
from ganlab.training.graph.state import TrainingState

COUNT = 8

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("cpus")]


def parts(name):
    made = {"constraints": [constraint(name, weight=0.5)]}
    if name == "consistency":
        mlp = ganlab.component("architectures", "mlp")
        made["architecture"] = mlp(width=8, depth=2, activation="tanh", latent_dim=3, dropout=0.3)
    return made


@pytest.mark.parametrize("name", ["dragan", "max_gradient_penalty", "consistency"])
def test_replicas_train_as_one_device_does(name):
    one = trained(0, count=COUNT, **parts(name))
    start = TrainingState(small(0, **parts(name)))
    assert distance(one.still(values(start)), one) > 5e-3

    for replicas in (1, 2, 4):
        assert_same(one, trained(replicas, count=COUNT, **parts(name)))

    reduced = one.reduced()
    if name == "max_gradient_penalty":
        steepest = reduced["constraints/max_gradient_penalty/steepest"]
        np.testing.assert_allclose(reduced["critic/penalty"], 0.5 * steepest**2, rtol=1e-5)
        assert (steepest > reduced["constraints/max_gradient_penalty/slope"]).all()
    if name == "consistency":  # two passes with one mask would differ nowhere
        assert reduced["constraints/consistency/difference"].min() > 0.01


@pytest.mark.parametrize(("name", "collective"), [("dragan", "mean"), ("max_gradient_penalty", "max")])
def test_a_replicas_own_statistic_would_show(name, collective, monkeypatch):
    one = trained(0, count=COUNT, **parts(name))
    monkeypatch.setattr(ReplicaView, collective, lambda self, x: x)
    # The state then differs between replicas, which the guards would notice in a run.
    assert distance(one, trained(2, count=COUNT, **parts(name))) > 1e-4


def test_gradient_normalization_trains_the_generator_too():
    made = [constraint("gradient_normalization"), constraint("r1", gamma=0.1)]
    one = trained(0, count=COUNT, constraints=made)
    before = values(TrainingState(small(0, constraints=made)))
    for network in ("generator", "critic"):
        moved = [np.abs(one.values[n] - v).max() for n, v in before.items() if n.startswith(f"{network}/weights/")]
        assert max(moved) > 1e-4
    assert np.isfinite(one.rows).all()
    assert np.abs(one.metric("critic/wasserstein")).max() < 2  # scores between -1 and 1
    assert_same(one, trained(2, count=COUNT, constraints=made))
