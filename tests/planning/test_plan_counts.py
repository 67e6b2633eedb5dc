"""Counts of traced steps against counts by hand."""

import numpy as np
import pytest
import tensorflow as tf
from ganlab_plan.counting import count


def graph_of(function, *shapes):
    specs = [tf.TensorSpec(shape, tf.float32) for shape in shapes]
    return tf.function(function, autograph=False).get_concrete_function(*specs).graph


def test_a_layer_and_its_gradient_by_hand():
    weights, bias = tf.Variable(tf.ones([20, 7])), tf.Variable(tf.ones([7]))

    def gradient(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(x @ weights + bias))
        return tape.gradient(loss, [weights, bias])

    counts = count(graph_of(gradient, [32, 20]))
    # Forward, and the gradient by the weights; that by the examples is not asked for.
    assert counts.products == {"float32": 2 * (2 * 32 * 20 * 7)}
    assert counts.flops < 2 * (2 * 32 * 20 * 7) + 8 * 32 * 7
    # Read: the examples twice and the weights; written and read: the layer's result and its gradient, and more.
    least = 4 * (2 * 32 * 20 + 20 * 7 + 20 * 7 + 4 * 32 * 7)
    assert least <= counts.fused <= 2 * least


def test_elementwise_operations_are_one_kernel():
    counts = count(graph_of(lambda x: tf.tanh(x * 2.0 + 1.0) - x, [1000, 100]))
    assert counts.fused == 2 * 4 * 1000 * 100 + 2 * 4  # and the two constants
    assert (counts.launches, counts.products) == (1, {})


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_a_convolution_counts_the_products_within_the_image(stride, padding):
    kernel = tf.Variable(tf.ones([3, 3, 4, 5]))
    counts = count(graph_of(lambda x: tf.nn.conv2d(x, kernel, stride, padding), [2, 8, 8, 4]))
    # By numpy: ones convolved with ones add up to the number of products at each output, for each input channel.
    ones = tf.nn.conv2d(tf.ones([1, 8, 8, 1]), tf.ones([3, 3, 1, 1]), stride, padding).numpy()
    assert counts.products == {"float32": 2 * 2 * 4 * 5 * float(np.sum(ones))}


def test_the_gradients_of_a_convolution_cost_as_much_as_it_does():
    kernel = tf.Variable(tf.ones([5, 5, 3, 8]))

    def gradients(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.square(tf.nn.conv2d(x, kernel, 2, "SAME")))
        return tape.gradient(loss, [x, kernel])

    forward = count(graph_of(lambda x: tf.nn.conv2d(x, kernel, 2, "SAME"), [4, 16, 16, 3])).flops
    assert count(graph_of(gradients, [4, 16, 16, 3])).products["float32"] == 3 * forward


def test_a_loop_counts_as_often_as_it_runs_and_unused_work_does_not():
    def looped(x):
        _ = x @ x @ x
        return tf.while_loop(lambda i, y: i < 6, lambda i, y: (i + 1, y @ x), [0, x])[1]

    graph = graph_of(looped, [10, 10])
    assert count(graph).products == {"float32": 6 * 2000.0}
    assert count(graph, once=True).products == {"float32": 2000.0}


def test_a_tensor_that_nothing_reads_any_more_is_not_kept_for_its_name():
    # IdentityN names all of its inputs, of which only the first is read: so custom gradients are traced.
    def chained(x):
        for _ in range(5):
            product = tf.matmul(x, x)
            x = x * tf.raw_ops.IdentityN(input=[product[0, 0], product])[0]
        return x

    graph = tf.function(chained).get_concrete_function(tf.TensorSpec([64, 64], tf.float32)).graph
    matrix = 4.0 * 64 * 64
    assert 2 * matrix <= count(graph).peak < 3 * matrix
