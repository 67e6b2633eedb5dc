"""A graph is built once per run, whatever the lengths of its chunks."""

import numpy as np
import pytest
import tensorflow as tf
from small import Points, constraint, small

from ganlab.training.graph.step import TrainingStep
from ganlab.training.graph.trainer import Trainer
from ganlab.training.start import train


@pytest.mark.parametrize("replicas", [0, 2])
@pytest.mark.parametrize("python", [False, True])
def test_chunks_of_any_length_share_one_graph(cpus, monkeypatch, replicas, python):
    traced = []
    update = TrainingStep.generator_update

    def counted(self, *arguments):
        traced.append(tf.distribute.get_replica_context().replica_id_in_sync_group)
        return update(self, *arguments)

    monkeypatch.setattr(TrainingStep, "generator_update", counted)
    dataset = Points(np.random.default_rng(0).normal(size=(50, 2)), python=python)
    trainer = Trainer(small(replicas, dataset=dataset, constraints=[constraint("gradient_penalty", weight=0.1)]))
    trainer.trace()
    for count in (1, 2, 7, 3):
        assert trainer.train(count).shape[0] == count
    assert len(traced) == max(replicas, 1)  # once on each replica
    assert trainer._chunk.experimental_get_tracing_count() == 1


def test_a_run_with_rows_evaluations_and_checkpoints_builds_one_graph(tmp_path):
    counts = []

    class Counted(Trainer):
        def train(self, count):
            values = super().train(count)
            counts.append((count, self._chunk.experimental_get_tracing_count()))
            return values

    experiment = small(steps=20, log_every=3, evaluate_every=8, checkpoint_every=5)
    train(experiment, tmp_path / "run", trainer=Counted)
    assert sum(count for count, _ in counts) == 20
    assert len({count for count, _ in counts}) > 1
    assert {traces for _, traces in counts} == {1}
