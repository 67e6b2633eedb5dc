"""The examples that each replica and update sees."""

import numpy as np
import pytest
import tensorflow as tf
from small import Points, assert_same, constraint, small, trained

import ganlab
from ganlab.training.graph.inputs import Inputs, numbers_at

pytestmark = pytest.mark.usefixtures("cpus")


def numbers(inputs, steps, replicas):
    """Example numbers, `(steps, replicas, critic_steps * local_batch)`."""
    return np.array(
        [[inputs.numbers(tf.constant(step, tf.int64), replica) for replica in range(replicas)] for step in range(steps)]
    )


# 48 examples are 2 iterations of 2 updates of 12; epochs of 10 end inside a batch.
@pytest.mark.parametrize(("replicas", "critic_steps", "size", "iterations"), [(4, 2, 48, 6), (2, 1, 10, 5)])
def test_every_example_is_seen_once_an_epoch(replicas, critic_steps, size, iterations):
    inputs = Inputs(small(replicas, dataset=Points(np.zeros((size, 2))), critic_steps=critic_steps))
    for epoch in numbers(inputs, iterations, replicas).reshape(-1, size):
        assert sorted(epoch) == list(range(size))


@pytest.mark.parametrize("seed", [0, 1])
def test_orders_are_not_told_from_chance(seed):
    epochs = numbers_at(tf.range(720, dtype=tf.int64), 240, seed, 0).numpy().reshape(3, 240)
    assert np.abs(np.corrcoef([np.arange(240), *epochs]) - np.eye(4)).max() < 0.2  # a standard deviation is 0.065
    of_four_classes = [np.bincount(batch // 60, minlength=4) for batch in epochs.reshape(12, 60)]
    assert np.mean((np.array(of_four_classes) - 15) ** 2 / 15) < 1.25  # chi-squared, 3/4 by chance


def test_the_order_follows_the_seed():
    orders = [numbers(Inputs(small(0, dataset=Points(np.zeros((48, 2))), seed=s)), 4, 1).ravel() for s in (0, 1, 0)]
    assert not np.array_equal(orders[0], orders[1])
    np.testing.assert_array_equal(orders[0], orders[2])


def test_one_example_is_a_set_too():
    assert (numbers(Inputs(small(0, dataset=Points([[1.0, 2.0]]))), 2, 1) == 0).all()


def test_endless_distribution_never_repeats_numbers():
    seen = numbers(Inputs(small(4, critic_steps=2)), 3, 4)
    assert sorted(seen.ravel()) == list(range(3 * 2 * 12))


@pytest.mark.parametrize("size", [None, 20])
def test_replicas_share_out_the_batch_of_one(size):
    dataset = (
        ganlab.component("datasets", "gaussian_ring")() if size is None else Points(np.arange(2 * size).reshape(-1, 2))
    )
    one, four = (Inputs(small(replicas, dataset=dataset, critic_steps=2)) for replicas in (1, 4))
    for step in (tf.constant(0, tf.int64), tf.constant(9, tf.int64)):
        parts = [four.examples(step, replica).numpy() for replica in range(4)]
        np.testing.assert_allclose(np.concatenate(parts, axis=1), one.examples(step, 0), rtol=1e-6, atol=1e-6)


def test_python_data_comes_through_tf_data_and_trains_the_same():
    points = np.random.default_rng(0).normal(size=(30, 2))
    inside, outside = Points(points), Points(points, python=True)
    assert not Inputs(small(2, dataset=inside)).on_host
    assert Inputs(small(2, dataset=outside)).on_host

    one = trained(0, dataset=inside, constraints=[constraint("weight_clipping", limit=0.5)])
    two = trained(2, dataset=outside, constraints=[constraint("weight_clipping", limit=0.5)])

    assert_same(one, two)


def test_python_inside_a_loop_is_found():
    # TensorFlow has no public access to the functions that a graph calls. If this fails, FuncGraph._functions has
    # changed, and ganlab.training.graph.inputs needs another way: until then Python data runs inside the training loop.
    class OneByOne(Points):
        def examples(self, numbers, seed):
            def one(number):
                point = tf.numpy_function(lambda n: self._points[n], [number], tf.float32)
                return tf.ensure_shape(point, (2,))

            return tf.map_fn(one, numbers, fn_output_signature=tf.TensorSpec((2,), tf.float32))

    assert Inputs(small(0, dataset=OneByOne(np.zeros((30, 2))))).on_host


class Wrong(ganlab.Dataset):
    sample_shape = (2,)

    def __init__(self, make):
        self._make = make

    def examples(self, numbers, seed):
        return self._make(numbers)


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (lambda numbers: tf.zeros([numbers.shape[0], 3]), r"\(12, 3\)"),
        (lambda numbers: tf.zeros([numbers.shape[0] + 1, 2]), r"\(13, 2\)"),
        (lambda numbers: tf.zeros([numbers.shape[0], 2], tf.float64), "float64"),
        (lambda numbers: tf.numpy_function(lambda n: n, [numbers], tf.float32), "unknown"),
    ],
    ids=["another sample shape", "another count", "another dtype", "a shape nobody knows"],
)
def test_wrong_examples_are_refused(make, shown):
    with pytest.raises(ganlab.ContractError, match=f"Dataset Wrong returned .*{shown}.*must be .12, 2., float32"):
        Inputs(small(0, dataset=Wrong(make)))
