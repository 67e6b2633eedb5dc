"""All-reduces inside a step: their values, their gradients of both orders, their order, and the time to trace them."""

import hashlib
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from ganlab_verify import lab
from small import constraint, small, values
from tensorflow.python.ops import op_selector

import ganlab
from ganlab.training.graph.collectives import own_all_reduces
from ganlab.training.graph.trainer import Trainer

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


class Centered(ganlab.Loss):
    """Its state follows a sum of two means, which the step also logs."""

    def initial_state(self):
        return {"center": tf.constant(0.0)}

    def advance(self, state, real_scores, fake_scores, replica):
        middle = replica.mean(tf.reduce_mean(real_scores) + tf.reduce_mean(fake_scores)) / 2
        return {"center": 0.9 * state["center"] + 0.1 * middle}

    def critic(self, real_scores, fake_scores, state):
        center = state["center"]
        return tf.nn.softplus(1.0 - real_scores + center) + tf.nn.softplus(1.0 + fake_scores - center)

    def generator(self, fake_scores):
        return -fake_scores


# A loss that is free to choose its order gave four results in these eight trainings, on 2 replicas.
@pytest.mark.slow
@pytest.mark.parametrize("replicas", [2, 4])
def test_the_same_training_has_the_same_bits_every_time(replicas):
    adam = ganlab.component("optimizers", "adam")(learning_rate=1e-4, beta_1=0.5)
    experiment = small(
        replicas,
        loss=Centered(),
        architecture=ganlab.component("architectures", "mlp")(width=32),
        constraints=[constraint("gradient_penalty")],
        optimizer=adam,
        critic_steps=5,
        batch_size=256,
    )
    trainer = Trainer(experiment)
    first, found = values(trainer.state), []
    for _ in range(8):
        trainer.state.step = 0
        with experiment.strategy.scope():
            for name, variable in trainer.state.variables().items():
                variable.assign(first[name])
        rows = b"".join(trainer.train(count).tobytes() for count in (1, 9, 10, 20))
        found.append(hashlib.sha256(rows).hexdigest()[:8])
    assert found == found[:1] * len(found)


def test_what_four_replicas_sum_is_used_by_nothing_else():
    strategy = lab.strategy(4)

    def run(x):
        with own_all_reduces():
            return all_reduce("MEAN", x) + tf.cos(x)

    traced = tf.function(lambda x: strategy.run(run, args=(x,)), autograph=False)
    sums = [op for op in traced.get_concrete_function(tf.constant(1.0)).graph.get_operations() if op.type == "AddN"]
    inputs = [tensor for op in sums for tensor in op.inputs]
    assert len(inputs) >= 4
    assert {tensor.op.type for tensor in inputs} == {"Snapshot"}
    # The custom gradient's identity passes them on, unused, and TensorFlow prunes that before the graph runs.
    assert {consumer.type for tensor in inputs for consumer in tensor.consumers()} == {"AddN", "IdentityN"}
