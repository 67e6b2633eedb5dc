"""Iterations and replicas become the rows that people read."""

import numpy as np

from ganlab.training.graph.replica import Metric
from ganlab.training.pending_rows import Rows

METRICS = [Metric("a", "mean"), Metric("b", "max"), Metric("c", "min"), Metric("d", "sum")]
# Two iterations on two replicas: 1 and 2, then 5 and 10, of every metric.
SEEN = np.repeat(np.array([[1.0, 2.0], [5.0, 10.0]], np.float32)[:, :, None], 4, axis=2)


def test_each_metric_is_reduced_as_it_was_logged():
    ((mean, largest, least, total),) = Rows(METRICS, 2, 2).add(0, SEEN)
    assert (mean.step, mean.tag, mean.reduced, mean.replicas) == (2, "a", 4.5, (3.0, 6.0))
    assert (largest.reduced, largest.replicas) == (10.0, (5.0, 10.0))
    assert (least.reduced, least.replicas) == (1.0, (1.0, 2.0))
    # A sum is over examples and replicas, and a mean over iterations.
    assert (total.reduced, total.replicas) == (9.0, (3.0, 6.0))


def test_unfinished_row_is_kept_for_the_next():
    rows = Rows(METRICS, 3, 2)
    assert list(rows.add(0, SEEN)) == []
    assert rows.pending.shape == (2, 2, 4)
    ((mean, *_),) = rows.add(2, SEEN[:1])
    assert (mean.step, mean.replicas) == (3, (7 / 3, 14 / 3))
    assert len(rows.pending) == 0
    assert rows.rest(3) == []


def test_the_breaking_iteration_has_a_row_of_its_own_after_that_of_the_finite_ones():
    rows = Rows(METRICS, 100, 2)
    assert list(rows.add(0, SEEN)) == []
    broken = np.where(np.array([1, 0, 0, 0]), np.nan, SEEN[1:] * 1e9)
    before, at = rows.breaking(2, np.concatenate([SEEN[:1], broken]).astype(np.float32))
    assert [record.step for record in before] == [3] * 4
    assert before[0].replicas == (7 / 3, 14 / 3)
    assert [(record.step, record.tag, record.replicas) for record in at[1:]] == [(4, tag, (5e9, 1e10)) for tag in "bcd"]
    assert np.isnan(at[0].reduced)


def test_a_break_right_after_a_row_adds_one_row():
    rows = Rows(METRICS, 2, 2)
    assert [row[0].step for row in rows.breaking(0, np.concatenate([SEEN, SEEN[:1]]))] == [2, 3]
