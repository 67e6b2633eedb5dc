"""How iterations and replicas become the rows that people read."""

import numpy as np

from ganlab.training.replica import Metric
from ganlab.training.rows import Rows

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


def test_what_no_row_has_taken_is_kept_for_the_next():
    rows = Rows(METRICS, 3, 2)
    assert list(rows.add(0, SEEN)) == []
    assert rows.pending.shape == (2, 2, 4)
    ((mean, *_),) = rows.add(2, SEEN[:1])
    assert (mean.step, mean.replicas) == (3, (7 / 3, 14 / 3))
    assert len(rows.pending) == 0
    assert rows.rest(3) == []
