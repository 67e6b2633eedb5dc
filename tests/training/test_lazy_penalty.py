"""A penalty computed in every n-th critic update: its values, its metrics, and that it does nothing in between."""

import numpy as np
import pytest
import tensorflow as tf
from small import small, trained

import ganlab
from ganlab.composition import Turn
from ganlab.errors import ContractError, IncompatibleError
from ganlab.functional import interpolate, slopes
from ganlab.training.graph.replica import Metric
from ganlab.training.graph.trainer import Trainer
from ganlab.training.pending_rows import Rows

pytestmark = pytest.mark.usefixtures("cpus")


class Slopes(ganlab.Constraint):
    """The gradient penalty, made lazy by the core or, for comparison, by a factor of its own."""

    def __init__(self, *, every: int = 1, by_hand: int = 1) -> None:
        self.every, self.by_hand, self.runs = every, by_hand, 0

    def penalty(self, critic, batch, state, replica):
        points = interpolate(batch.real, batch.fake, replica.uniform([batch.real.shape[0]]))
        slope = slopes(critic, points)
        replica.log("slope", slope)
        replica.log("steepest", slope, reduce="max")
        factor = self.by_hand if self.by_hand == 1 else tf.where(batch.step % self.by_hand == 0, float(self.by_hand), 0)
        return factor * tf.square(slope - 1.0)


class Counted(Slopes):
    """Counts on the host how often it really runs."""

    def penalty(self, critic, batch, state, replica):
        def count(value):
            self.runs += 1
            return value

        value = super().penalty(critic, batch, state, replica)
        return value + 0.0 * tf.ensure_shape(tf.numpy_function(count, [value], tf.float32), value.shape)


class Communicating(ganlab.Constraint):
    every = 2

    def penalty(self, critic, batch, state, replica):
        return replica.mean(critic(batch.real))


@pytest.fixture(scope="module")
def masked(cpus):
    return trained(0, constraints=[Slopes(by_hand=3)], critic_steps=2)


@pytest.fixture(scope="module")
def plain(cpus):
    return trained(0, constraints=[], critic_steps=2)


@pytest.mark.slow
@pytest.mark.parametrize(("replicas", "jit"), [(2, "on"), (0, "off"), (4, "off")])
def test_lazy_penalty_equals_a_penalty_masked_and_multiplied_by_hand(masked, plain, replicas, jit):
    # Two updates an iteration and cycles of three: the penalty comes first, second or not at all in an iteration.
    lazy = trained(replicas, constraints=[Slopes(every=3)], critic_steps=2, jit=jit)
    for name, value in masked.values.items():
        np.testing.assert_allclose(lazy.values[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(lazy.reduced()["critic/penalty"], masked.reduced()["critic/penalty"], rtol=1e-4)
    kernel = "critic/weights/hidden_1/kernel"
    assert np.abs(lazy.values[kernel] - plain.values[kernel]).max() > 1e-3


def test_lazy_penalty_is_not_computed_in_updates_without_it():
    counted = Counted(every=4)
    trained(0, count=5, constraints=[counted], critic_steps=2)  # updates 0 to 9, of which 0, 4 and 8
    assert counted.runs == 3


@pytest.mark.slow
def test_lazy_metrics_are_means_over_the_updates_with_the_penalty():
    lazy = Trainer(small(2, constraints=[Slopes(every=3)], critic_steps=2))
    values = lazy.train(6)
    masked = trained(2, count=6, constraints=[Slopes(by_hand=3)], critic_steps=1)
    slope, steepest = (
        next(m for m in lazy.metrics if m.tag == f"constraints/slopes/{name}") for name in ("slope", "steepest")
    )
    # Updates 0, 3, 6 and 9 are of iterations 0, 1, 3 and 4.
    assert list(slope.measured(np.arange(6), Turn(2))) == [True, True, False, True, True, False]
    column = values[:, :, lazy.metrics.index(slope)]
    largest = values[:, :, lazy.metrics.index(steepest)]
    assert (column[[0, 1, 3, 4]] > 0).all()
    assert (largest[[0, 1, 3, 4]] > column[[0, 1, 3, 4]]).all()
    assert not column[[2, 5]].any()
    assert not largest[[2, 5]].any()
    # The first update of both is the same, and not divided by the two updates of its iteration.
    np.testing.assert_allclose(column[0], masked.metric(slope.tag)[0], rtol=1e-5)

    rows = list(Rows(lazy.metrics, 1, 2, turn=Turn(2)).add(0, values))
    assert [slope.tag in {r.tag for r in row} for row in rows] == [True, True, False, True, True, False]
    (row,) = Rows(lazy.metrics, 6, 2, turn=Turn(2)).add(0, values)
    means = {r.tag: r.replicas for r in row}
    np.testing.assert_allclose(means[slope.tag], column[[0, 1, 3, 4]].mean(axis=0), rtol=1e-6)


def test_a_metric_counts_updates_and_not_iterations():
    metric = Metric("a", "mean", every=5)
    for critic_steps in (1, 2, 5, 7):
        hit = [any((t * critic_steps + k) % 5 == 0 for k in range(critic_steps)) for t in range(20)]
        assert list(metric.measured(np.arange(20), Turn(critic_steps))) == hit


def test_collective_in_a_lazy_penalty_is_refused():
    with pytest.raises(IncompatibleError, match=r"communicates between replicas.*once in 2 updates.*every = 1"):
        Trainer(small(2, constraints=[Communicating()])).trace()


@pytest.mark.parametrize("every", [0, -1, 1.5, "2"])
def test_cycle_must_be_a_whole_number(every):
    with pytest.raises(ContractError, match=f"slopes has every = {every!r}; it must be a whole number of at least 1"):
        Trainer(small(0, constraints=[Slopes(every=every)]))
