"""The row rule forgives what rounding decides, and nothing more."""

import pytest

import ganlab
from ganlab.functional import example_norm
from ganlab.lazy import tensorflow as tf

pytestmark = pytest.mark.usefixtures("cpus")


class ChargesTheLarge(ganlab.Constraint):
    """Charges examples above a size that the last one just exceeds, each measured a little larger than the one before.

    Attributes:
        by: How much larger, relative to its size.
        threshold: The size.
    """

    by, threshold = 0.0, 0.0

    def penalty(self, critic, batch, state, replica):
        size = example_norm(batch.real)
        measured = size * (1.0 + self.by * tf.cast(tf.range(batch.real.shape[0]), tf.float32))
        return tf.cast(measured > self.threshold, tf.float32) * size


@pytest.mark.parametrize(("by", "expected"), [(1e-6, 0), (1e-3, 1)], ids=["rounding", "place"])
def test_a_row_at_a_jump_may_depend_on_rounding_alone(by, expected):
    from ganlab_verify.testing.rows import unruly
    from ganlab_verify.testing.trials import Trials

    bench = Trials(ChargesTheLarge, None).bench
    last = float(example_norm(bench.batch.real)[-1])
    bench.constraint.by, bench.constraint.threshold = by, last * (1.0 + by * (bench.batch.size - 1.5))
    before = bench.penalty(bench.draws()).numpy()
    assert before[-1] > 0, "the last example just exceeds the threshold"
    found = list(unruly(bench))
    assert len(found) == expected, found
    assert all("change places" in message for message in found)
