"""Products of a graph alone: which they are, what they wait for, and that all of them run."""

import numpy as np
import pytest
import tensorflow as tf
from benchmarks import cases, skeleton


def graph_of(function, *shapes):
    specs = [tf.TensorSpec(shape, tf.float32) for shape in shapes]
    return tf.function(function, autograph=False).get_concrete_function(*specs).graph


def test_products_wait_as_in_the_graph_and_all_of_them_run():
    a, b = tf.Variable(tf.ones([4, 4])), tf.Variable(tf.ones([4, 3]))

    def function(x):
        hidden = tf.nn.relu(x @ a)
        return hidden @ b, tf.matmul(hidden, tf.cos(hidden), transpose_a=True)

    first, second, third = skeleton.products_of(graph_of(function, [5, 4]))
    assert (first.after, second.after, third.after) == (set(), {0}, {0})
    assert second.inputs[0] == 0  # the rectifier between them changes no shape
    # One result cannot stand for two tensors: `hidden` and its cosine differ, and so must their places.
    assert third.inputs[0] == 0
    assert isinstance(third.inputs[1], skeleton.Given)
    assert third.op.get_attr("transpose_a")
    x, weights, other, cosine = (one.value().numpy() for one in (*first.inputs, second.inputs[1], third.inputs[1]))
    hidden = x @ weights
    once = (hidden @ other)[0, 0] + (hidden.T @ cosine)[0, 0]
    assert skeleton.Alone([first, second, third])(3) == pytest.approx(3 * once, rel=1e-5)


def test_the_gradients_of_a_convolution_keep_their_shapes():
    kernel = tf.Variable(tf.ones([3, 3, 2, 4]))

    def function(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.nn.relu(tf.nn.conv2d(x, kernel, 2, "SAME"))
        return tape.gradient(y, [x, kernel])

    products = skeleton.products_of(graph_of(function, [2, 8, 8, 2]))
    assert [product.op.type for product in products] == ["Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"]
    assert products[1].inputs[0].tolist() == [2, 8, 8, 2]
    assert products[2].inputs[1].tolist() == [3, 3, 2, 4]
    assert np.isfinite(skeleton.Alone(products)(2))


def test_products_within_a_loop_are_refused():
    def function(x):
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y @ y), (0, x))[1]

    with pytest.raises(ValueError, match="only those of a flat graph"):
        skeleton.products_of(graph_of(function, [4, 4]))


@pytest.mark.slow
def test_an_iteration_of_the_mlp_has_its_products_by_hand():
    products = skeleton.products_of(skeleton.iteration_of(cases.mlp(width=8, batch_size=4)))
    # An update of the critic: its samples 4; real and fake 4 each, the points between them 3, their slope 4; back from
    # real and fake 7 each, and from the slope 7. Of the generator: 4, the critic 4, back through it 4 and itself 7.
    assert len(products) == 5 * (4 + 4 + 4 + 3 + 4 + 7 + 7 + 7) + 4 + 4 + 4 + 7
    # TensorFlow would make equal ones once.
    assert len({(product.op.type, *(str(one) for one in product.inputs)) for product in products}) > 210
    assert np.isfinite(skeleton.Alone(products)(1))
