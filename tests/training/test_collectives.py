"""All-reduces inside a step: their values, their gradients of both orders, and the time to trace them."""

from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from ganlab_verify import lab
from tensorflow.python.ops import op_selector

from ganlab.training.graph.collectives import own_all_reduces

pytestmark = pytest.mark.usefixtures("cpus")

POINTS = np.array([[1.0, -2.0], [0.5, 3.0]], np.float32)  # a row for each replica


def on_two(function, *, graph=True):
    strategy = lab.strategy(2)
    rows = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(POINTS[context.replica_id_in_sync_group])
    )

    def run(x):
        with own_all_reduces():
            return function(x)

    traced = tf.function(lambda x: strategy.run(run, args=(x,)), autograph=False) if graph else None
    results = traced(rows) if graph else strategy.run(run, args=(rows,))
    return np.stack(strategy.experimental_local_results(results))


def all_reduce(reduce_op, x):
    return tf.distribute.get_replica_context().all_reduce(reduce_op, x)


@pytest.mark.parametrize("graph", [True, False], ids=["graph", "eager"])
def test_sums_means_and_structures_are_those_of_tensorflow(graph):
    def function(x):
        total, parts = all_reduce("SUM", (x, [x[:1]]))
        return tf.concat([total, parts[0], all_reduce(tf.distribute.ReduceOp.MEAN, x)], 0)

    expected = np.concatenate([POINTS.sum(0), POINTS.sum(0)[:1], POINTS.mean(0)])
    np.testing.assert_allclose(on_two(function, graph=graph), [expected, expected], rtol=1e-6)


def test_gradients_of_both_orders_pass_through_sums_over_replicas():
    # With s = x + y over the replicas and the loss s^3 on each, its sum is 2 s^3: a replica's gradient is 6 s^2. The
    # slope's square, 36 s^4 on each, is differentiated the same way: 2 * 144 s^3.
    def function(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                loss = tf.reduce_sum(all_reduce("SUM", x) ** 3)
            slope = inner.gradient(loss, x)
            size = tf.reduce_sum(slope**2)
        return tf.concat([slope, outer.gradient(size, x)], 0)

    total = POINTS.sum(0)
    expected = np.concatenate([6 * total**2, 288 * total**3])
    np.testing.assert_allclose(on_two(function), [expected, expected], rtol=1e-5)


def test_a_deep_network_with_synchronized_normalizations_is_not_searched():
    longest = {}
    for depth in (2, 8):
        found = []

        def noted(*args, found=found, plain=op_selector.get_backward_walk_ops, **kwargs):
            found.append(plain(*args, **kwargs))
            return found[-1]

        def function(x, depth=depth):
            for _ in range(depth):
                x = tf.tanh(x - all_reduce("MEAN", x))
            return x

        with mock.patch.object(op_selector, "get_backward_walk_ops", noted):
            on_two(function)
        longest[depth] = max(map(len, found))
    assert longest[2] == longest[8] < 20


def test_afterwards_the_context_is_as_before():
    def run(x):
        context = tf.distribute.get_replica_context()
        before = context.all_reduce
        with own_all_reduces():
            assert context.all_reduce != before
        assert context.all_reduce == before
        return x

    strategy = lab.strategy(2)
    tf.function(lambda x: strategy.run(run, args=(x,)), autograph=False)(tf.constant(1.0))
