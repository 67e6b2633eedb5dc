"""Activations that sort, by hand and against numpy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from ganlab.layers import FullSort, GroupSort

pytestmark = pytest.mark.usefixtures("same_numbers")

RANDOM = np.random.default_rng(0)


def test_by_hand():
    x = tf.constant([[3.0, 1.0, -2.0, 5.0, 0.0, 0.0]])
    np.testing.assert_array_equal(GroupSort(2)(x), [[1, 3, -2, 5, 0, 0]])
    np.testing.assert_array_equal(GroupSort(3)(x), [[-2, 1, 3, 0, 0, 5]])
    np.testing.assert_array_equal(FullSort()(x), [[-2, 0, 0, 1, 3, 5]])


@pytest.mark.parametrize("layer", [GroupSort(2), GroupSort(4), FullSort()], ids=["max_min", "four", "full"])
@pytest.mark.parametrize("shape", [(5, 8), (3, 4, 4, 8)])
def test_channels_are_sorted_and_the_jacobian_is_a_permutation(layer, shape):
    x = RANDOM.normal(size=shape).astype(np.float32)
    size = getattr(layer, "group_size", shape[-1])
    np.testing.assert_array_equal(layer(x), np.sort(x.reshape(*shape[:-1], -1, size), axis=-1).reshape(shape))
    one = tf.constant(x.reshape(-1, 8)[:1])
    with tf.GradientTape() as tape:
        tape.watch(one)
        y = layer(one)
    jacobian = tape.jacobian(y, one).numpy().reshape(8, 8)
    np.testing.assert_array_equal(jacobian @ jacobian.T, np.eye(8))
    assert set(jacobian.ravel()) == {0.0, 1.0}


@pytest.mark.parametrize("layer", [GroupSort(2), GroupSort(4), FullSort()], ids=["max_min", "four", "full"])
def test_at_ties_the_gradient_is_still_that_of_a_permutation(layer):
    # Gradients that all went to one of the equal inputs would have the norm 2 here.
    x, upstream = tf.ones([1, 4]), tf.constant([[1.0, 2.0, 3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(upstream * layer(x))
    assert sorted(tape.gradient(y, x).numpy()[0]) == [1, 2, 3, 4]


def test_they_are_saved_with_a_model(tmp_path):
    inputs = keras.Input((6,))
    model = keras.Model(inputs, FullSort()(GroupSort(3, name="three")(inputs)))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.get_layer("three").group_size == 3
    x = RANDOM.normal(size=(4, 6)).astype(np.float32)
    np.testing.assert_array_equal(loaded(x), np.sort(x, axis=-1))


def test_groups_fill_the_last_axis():
    with pytest.raises(ValueError, match=r"group_size=4\) cannot sort a last axis of 6: it must be a multiple"):
        GroupSort(4)(tf.ones([2, 6]))
    with pytest.raises(ValueError, match=r"group_size=1\): it must be at least 2"):
        GroupSort(1)


def test_compiled_they_are_the_same():
    x = RANDOM.normal(size=(4, 3, 8)).astype(np.float32)
    for layer in (GroupSort(2), GroupSort(4), FullSort()):
        np.testing.assert_array_equal(tf.function(layer, jit_compile=True)(x), layer(x))
