"""Kernels that `ganlab plan --topology cpu` measures alone have the shapes and variables that they have in the step."""

import keras
import pytest
import tensorflow as tf
from ganlab_plan import this_machine
from ganlab_plan.counting import count

import ganlab


@pytest.fixture
def made(monkeypatch):
    """The results of the operations that were measured, each run once."""
    results = []

    def once(make):
        def run():
            result = make()
            results.append(result)
            with tf.control_dependencies([result]):
                return tf.constant(0)

        tf.function(run, autograph=False)()
        return 1e-3

    monkeypatch.setattr(this_machine, "_chained", once)
    return results


def kernels_of(function, *shapes):
    specs = [tf.TensorSpec(shape, tf.float32) for shape in shapes]
    return count(tf.function(function, autograph=False).get_concrete_function(*specs).graph).kernels


def test_the_gradient_of_a_convolution_has_the_filters_shape(made):
    kernel = tf.Variable(tf.ones([3, 3, 2, 4]))

    def gradient(x):
        with tf.GradientTape() as tape:
            y = tf.nn.relu(tf.nn.conv2d(x, kernel, 2, "SAME"))
        return tape.gradient(y, kernel)

    (filters,) = (kernel.op for kernel in kernels_of(gradient, [2, 8, 8, 2]) if "Filter" in kernel.op.type)
    assert this_machine._measured(filters) == 1e-3
    assert made[0].shape == [3, 3, 2, 4]  # with zeros for its shape the kernel would do nothing


def test_an_optimizers_update_is_measured_on_variables_of_its_own(made):
    variable, adam = keras.Variable(tf.ones([5, 7])), ganlab.component("optimizers", "adam")()
    adam.build([variable])
    kernels = kernels_of(lambda gradient: adam.apply([gradient], [variable]), [5, 7])
    (update,) = (kernel.op for kernel in kernels if kernel.op.type == "ResourceApplyAdam")
    assert this_machine._measured(update) == 1e-3
    assert (variable.numpy() == 1.0).all()


def test_few_bytes_never_take_longer_than_more(monkeypatch):
    seconds = iter([14e-6, 1e-7, 2e-6, 3e-6, 1e-4, 2e-3, 1e-2])  # the first was disturbed
    monkeypatch.setattr(this_machine, "_chained", lambda make: next(seconds))
    _, spent = this_machine._curve()
    assert spent.tolist() == [1e-7, 1e-7, 2e-6, 3e-6, 1e-4, 2e-3, 1e-2]
