"""Gradients through rectifiers: the same numbers, without the work whose result is known to be zero."""

import numpy as np
import pytest
import tensorflow as tf

from ganlab.functional import slopes

SHAPES = [(3, 5), (5, 4), (4, 1)]


def weights():
    random = np.random.default_rng(1)
    return [tf.constant(random.normal(size=shape), tf.float32) for shape in SHAPES]


def critic(weights, activation):
    def score(x):
        for weight in weights[:-1]:
            x = activation(x @ weight)
        return tf.reshape(x @ weights[-1], [-1])

    return score


def gradients(activation, x):
    """Gradients of the mean squared slope by the weights: from the graph, as in training, from the tape; the graph."""

    @tf.function(autograph=False)
    def by_graph(given):
        return tf.gradients(tf.reduce_mean(slopes(critic(given, activation), x) ** 2), given)

    with tf.GradientTape() as tape:
        given = weights()
        tape.watch(given)
        value = tf.reduce_mean(slopes(critic(given, activation), x) ** 2)
    return by_graph(weights()), tape.gradient(value, given), by_graph.get_concrete_function(weights()).graph


@pytest.mark.parametrize("activation", [tf.nn.relu, tf.nn.leaky_relu, tf.nn.tanh])
def test_gradients_are_those_of_the_tape(activation):
    x = tf.constant(np.random.default_rng(2).normal(size=(7, 3)), tf.float32)
    graph, tape, _ = gradients(activation, x)
    for one, other in zip(graph, tape, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("activation", [tf.nn.relu, tf.nn.leaky_relu])
def test_the_mean_squared_slope_of_one_unit_by_hand(activation):
    # critic(x) = b * relu(a x) at x > 0 and a > 0: slope a b, whose square has the gradients 2 a b^2 and 2 a^2 b.
    a, b = tf.constant([[2.0]]), tf.constant([[3.0]])

    @tf.function(autograph=False)
    def by_graph():
        return tf.gradients(tf.reduce_mean(slopes(critic([a, b], activation), tf.constant([[0.7]])) ** 2), [a, b])

    np.testing.assert_allclose([g.numpy().item() for g in by_graph()], [36.0, 24.0], rtol=1e-5)


def test_no_product_multiplies_zeros():
    x = tf.constant(np.random.default_rng(2).normal(size=(7, 3)), tf.float32)
    _, _, graph = gradients(tf.nn.relu, x)
    # Three layers: two products forward, because the score itself is not needed; three back to x. Each of these three
    # has a gradient by its weight, and the two with a product before them also one by their other factor.
    count = sum(op.type == "MatMul" for op in graph.get_operations())
    assert count <= 3 + 3 + 3 + 2 + 1
