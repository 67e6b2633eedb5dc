"""A graph is built once a run, and the critic's gradient once for all updates, with the numbers of separate traces."""

import numpy as np
import pytest
import tensorflow as tf
from small import Points, constraint, small, values

import ganlab
from ganlab.training.graph.critic_update import CriticUpdate
from ganlab.training.graph.step import TrainingStep
from ganlab.training.graph.trainer import Trainer
from ganlab.training.start import train


class MeanScore(ganlab.Constraint):
    """Communicates in its penalty, which cannot be shared then."""

    def penalty(self, critic, batch, state, replica):
        scores = critic(batch.real)
        return tf.square(scores - replica.mean(tf.reduce_mean(scores)))


@pytest.fixture
def traces(monkeypatch):
    """Counts how often the critic's part is traced."""
    count, part = [], CriticUpdate.part

    def counted(self, *given):
        count.append(given)
        return part(self, *given)

    monkeypatch.setattr(CriticUpdate, "part", counted)
    return count


@pytest.mark.parametrize(
    ("made", "replicas", "expected"),
    [
        (lambda: constraint("gradient_penalty"), 0, 1),
        (lambda: constraint("gradient_penalty"), 2, 2),
        (MeanScore, 2, 1 + 2 * 2),  # one to find out
    ],
)
def test_a_part_is_traced_once_on_each_device_unless_it_communicates(cpus, traces, made, replicas, expected):
    Trainer(small(replicas, critic_steps=2, constraints=[made()])).train(2)
    assert len(traces) == expected


@pytest.mark.parametrize(("replicas", "expected"), [(0, 1), (2, 2 * 2)])
def test_a_single_device_traces_the_critics_update_once(cpus, monkeypatch, replicas, expected):
    numbers, update = [], TrainingStep.critic_update

    def counted(self, step, k, *given):
        numbers.append(k)
        return update(self, step, k, *given)

    monkeypatch.setattr(TrainingStep, "critic_update", counted)
    Trainer(small(replicas, critic_steps=2)).train(2)
    assert len(numbers) == expected


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [0, 2])
def test_shared_traces_train_as_separate_ones_do(cpus, replicas):
    weight = ganlab.component("schedules", "linear")(start=1.0, end=3.0)

    def one(shared):
        # Draws, a penalty that is computed in every second update, and one whose weight follows a schedule.
        parts = [constraint("gradient_penalty", every=2), constraint("r1", gamma=weight), constraint("spectral_norm")]
        trainer = Trainer(small(replicas, critic_steps=3, constraints=parts), shared=shared)
        rows = trainer.train(4)
        return rows, values(trainer.state), [metric.tag for metric in trainer.metrics]

    rows, variables, tags = one(shared=True)
    others, apart, _ = one(shared=False)
    np.testing.assert_allclose(others, rows, rtol=1e-5, atol=1e-6)
    for name, value in variables.items():
        np.testing.assert_allclose(apart[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
    assert np.ptp(rows[:, :, tags.index("constraints/r1/slope")]) > 0


@pytest.mark.slow
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
