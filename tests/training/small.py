"""Experiments small enough to train in a second, and ways to compare two of them."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from ganlab_verify.lab import Training
from making import constraint as constraint

import ganlab
from ganlab.layers import Dropout

STEPS = 20


def sgd(learning_rate=0.01, **arguments):
    """SGD, the optimizer that does not hide a factor in the gradient."""
    return ganlab.component("optimizers", "sgd")(learning_rate=learning_rate, **arguments)


def strategy(replicas):
    """That many replicas on virtual CPUs; 0 for one device without a mirror."""
    if replicas == 0:
        return ganlab.component("strategies", "one_device")(device="CPU:0")
    return ganlab.component("strategies", "mirrored")(virtual_replicas=replicas)


def small(replicas=0, *, optimizer=None, **parts):
    """Two hidden layers of eight units on the 8 Gaussians, smooth so that no kink magnifies rounding."""
    optimizer = optimizer or sgd()
    given = {
        "dataset": ganlab.component("datasets", "gaussian_ring")(),
        "architecture": ganlab.component("architectures", "mlp")(width=8, depth=2, activation="tanh", latent_dim=3),
        "loss": ganlab.component("losses", "wasserstein")(),
        "strategy": strategy(replicas),
        "critic_optimizer": optimizer,
        "generator_optimizer": optimizer,
        "batch_size": 12,  # three examples on each of four replicas, and latent vectors of three: not multiples of four
        "critic_steps": 1,
        "steps": STEPS,
        "jit": "off",
    }
    return ganlab.experiment(**{**given, **parts})


# The ways to compute an experiment on several replicas or in parts, for a test that they all train the same.
computed = pytest.mark.parametrize(
    ("replicas", "changed"),
    [
        (2, {}),
        (0, {"microbatches": 3}),
        (2, {"microbatches": 2}),
        (0, {"rematerialize": True}),
        *(
            pytest.param(*way, marks=pytest.mark.slow)
            for way in ((4, {}), (0, {"jit": "on"}), (0, {"jit": "step"}), (2, {"jit": "on"}))
        ),
    ],
)


def broken(**methods):
    """A constraint with these methods, of the name that errors give it."""
    return type("Broken", (ganlab.Constraint,), methods)()


def values(state):
    return {name: variable.numpy() for name, variable in state.variables().items()}


def trained(replicas=0, *, count=STEPS, **parts):
    """Trains a small experiment."""
    return Training(small(replicas, **parts)).train(count).still()


def assert_same(one, other, *, rtol=1e-5, atol=1e-6):
    """Asserts that two trainings agree in every variable and in every reduced metric of every iteration."""
    assert list(one.values) == list(other.values)
    for name, value in one.values.items():
        np.testing.assert_allclose(other.values[name], value, rtol=rtol, atol=atol, err_msg=name)
    metrics, others = one.reduced(), other.reduced()
    assert list(metrics) == list(others)
    for tag, value in metrics.items():
        np.testing.assert_allclose(others[tag], value, rtol=rtol, atol=atol, err_msg=tag)


def distance(one, other):
    """How far the networks' weights are apart, relative to their norm."""

    def flat(trained):
        return np.concatenate([v.ravel() for name, v in trained.values.items() if "/weights/" in name])

    return np.linalg.norm(flat(one) - flat(other)) / np.linalg.norm(flat(one))


class Layers(ganlab.Architecture):
    """Generator and critic from functions `inputs -> outputs`, for layers that no first-party architecture has."""

    def __init__(self, *, generator=None, critic=None, latent_dim=3):
        self._generator, self._critic = generator or _dense_generator, critic or _dense_critic
        self.latent_dim = latent_dim

    def generator(self, sample_shape):
        x = keras.Input((self.latent_dim,))
        return keras.Model(x, self._generator(x))

    def critic(self, sample_shape):
        x = keras.Input(sample_shape)
        return keras.Model(x, self._critic(x))


def _dense_generator(x):
    return keras.layers.Dense(2)(keras.layers.Dense(8, activation="tanh")(x))


def _dense_critic(x):
    return keras.layers.Dense(1)(keras.layers.Dense(8, activation="tanh")(x))


def normalized_generator(x):
    x = keras.layers.BatchNormalization(synchronized=True, momentum=0.9)(keras.layers.Dense(8)(x))
    return keras.layers.Dense(2)(keras.layers.Activation("tanh")(x))


def dropping_critic(x):
    x = Dropout(0.3)(keras.layers.Dense(7, activation="tanh")(x))
    return keras.layers.Dense(1)(x)


def normalized_critic(x):
    x = keras.layers.BatchNormalization(synchronized=True, momentum=0.9)(keras.layers.Dense(8)(x))
    return keras.layers.Dense(1)(keras.layers.Activation("tanh")(x))


class Points(ganlab.Dataset):
    """A table of examples, `(size, ...)`, through TensorFlow or through Python."""

    def __init__(self, points, *, python=False):
        self._points, self._python = np.asarray(points, np.float32), python
        self.sample_shape, self.size = self._points.shape[1:], len(self._points)

    def examples(self, numbers, seed):
        if not self._python:
            return tf.gather(self._points, numbers)
        taken = tf.numpy_function(lambda n: self._points[n], [numbers], tf.float32)
        return tf.ensure_shape(taken, (numbers.shape[0], *self.sample_shape))
