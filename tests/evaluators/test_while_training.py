"""Evaluators inside training: under the run's strategy, and without an effect on training."""

import numpy as np
import pytest
import tensorflow as tf
from making import architecture, constraint, dataset, optimizer
from small import small

import ganlab

pytestmark = pytest.mark.slow


class Spy(ganlab.Evaluator):
    def __init__(self):
        self.replicas = []

    def evaluate(self, sample, dataset, run):
        self.replicas.append(tf.distribute.get_strategy().num_replicas_in_sync)
        assert tf.distribute.in_cross_replica_context()
        return {"samples": len(sample(3, 0))}


def train(path, evaluators):
    experiment = small(
        2,
        dataset=dataset("digits"),
        architecture=architecture("dcgan", channels=4, latent_dim=3),
        constraints=[constraint("gradient_penalty")],
        optimizer=optimizer("adam", learning_rate=1e-3),
        batch_size=8,
        steps=4,
        evaluate_every=2,
        log_every=1,
        evaluators=evaluators,
    )
    return ganlab.train(experiment, path)


def test_a_classifier_that_trains_beside_leaves_training_as_it_was(cpus, tmp_path, monkeypatch):
    monkeypatch.setenv("GANLAB_CACHE", str(tmp_path))
    classifier = ganlab.component("features", "classifier")(updates=3, width=4)
    spy = Spy()
    names = ("frechet_distance", "kid", "classifier_score")
    evaluators = [ganlab.component("evaluators", name)(features=classifier, samples=100) for name in names]
    alone, run = train(tmp_path / "alone", []), train(tmp_path / "run", [*evaluators, spy])
    assert spy.replicas == [2, 2, 2]  # before the first step, in the middle, at the end
    figures = run.info["evaluation"]
    assert {name.partition("/")[0] for name in figures} == {*names, "spy"}
    assert np.isfinite(list(figures.values())).all()
    assert len(list((tmp_path / "features").iterdir())) == 1
    # Bit for bit, on every replica.
    trained = {(r.step, r.tag): (r.reduced, r.replicas) for r in alone.metrics()}
    beside = {(r.step, r.tag): (r.reduced, r.replicas) for r in run.metrics() if not r.tag.startswith("evaluation/")}
    assert len(trained) > 12
    assert beside == trained
    for one, other in zip(alone.generator().get_weights(), run.generator().get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
