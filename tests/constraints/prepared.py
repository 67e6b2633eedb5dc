"""Constraints on layers of known weights, the matrices of these layers, and a replica that is alone."""

import math

import keras
import numpy as np
import tensorflow as tf
from alone import Alone as Alone
from making import constraint
from networks_by_hand import differences

import ganlab
from ganlab.functional import named_weights


def prepared(name, *layers, shape, random=None, **arguments):
    """A constraint, the model of these layers that it was prepared for, and random weights by their short names."""
    random = random or np.random.default_rng(0)
    x = inputs = keras.Input(shape)
    for layer in layers:
        x = layer(x)
    model = keras.Model(inputs, x)
    found = constraint(name, **arguments)
    found.prepare(model)
    weights = {key: tf.constant(random.normal(size=v.shape), tf.float32) for key, v in named_weights(model).items()}
    return found, model, weights


def convolution(**arguments):
    return keras.layers.Conv2D(4, 3, use_bias=False, name="layer", **arguments)


def on_a_matrix(name, matrix, **arguments):
    """A constraint that was prepared for a dense layer of this kernel's shape, and the layer's weights."""
    rows, columns = np.shape(matrix)
    layer = keras.layers.Dense(columns, use_bias=False, name="layer")
    found, _, _ = prepared(name, layer, shape=(rows,), **arguments)
    return found, {"layer/kernel": tf.constant(matrix, tf.float32)}


def singular_values(matrix):
    return np.linalg.svd(np.asarray(matrix, np.float64), compute_uv=False)


def map_of(model, weights, shape):
    """The matrix of a linear layer or model, `(outputs, inputs)` float64, from its outputs for every unit vector."""
    for variable, weight in zip(model.trainable_variables, weights, strict=True):
        variable.assign(weight)
    units = np.eye(math.prod(shape), dtype=np.float32).reshape(-1, *shape)
    return np.reshape(model(units), (len(units), -1)).T.astype(np.float64)


def batch(real, fake):
    real, fake = tf.constant(real, tf.float32), tf.constant(fake, tf.float32)
    return ganlab.Batch(real=real, fake=fake, labels=None, size=len(real), step=tf.constant(0, tf.int64))


def linear(*slope):
    """The critic of a slope."""
    return lambda x: tf.linalg.matvec(x, tf.constant(slope, tf.float32))


# A critic of one hidden layer in numpy, v' tanh(W x + b), and its gradient by x.


def scores(weights, x):
    kernel, bias, last = weights
    return np.tanh(x @ kernel + bias) @ last


def gradients(weights, x):
    kernel, bias, last = weights
    return ((1 - np.tanh(x @ kernel + bias) ** 2) * last) @ kernel.T


def critic_of(weights):
    """The same critic in TensorFlow, and its variables."""
    variables = [tf.Variable(value, dtype=tf.float32) for value in weights]

    def critic(x):
        kernel, bias, last = variables
        return tf.linalg.matvec(tf.tanh(x @ kernel + bias), last)

    return critic, variables


def check_gradients(function, weights, found):
    """Compares gradients by each of the weights with central differences of a function of them in float64."""
    moved = [weight.copy() for weight in weights]
    for expected, gradient in zip(differences(lambda: function(moved), moved), found, strict=True):
        assert np.abs(expected).max() > 1e-3
        np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())
