"""Activations that are computed again in the backward pass: the same training in less memory."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from ganlab_plan.counting import count
from small import Layers, assert_same, constraint, small, trained

import ganlab
from ganlab import layers
from ganlab.training.graph.rematerialization import recomputed
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")

# Weak enough that nothing diverges by plain gradient descent.
WEAK = {"gradient_penalty": {"weight": 0.1}, "r1": {"gamma": 0.1}, "spectral_norm": {}}


def deep(x, depth=4, units=8, activation="tanh"):
    """Residual blocks of dense layers: a cut inside one would pass on two tensors."""
    for _ in range(depth):
        h = keras.layers.Dense(units, activation=activation)(x)
        h = layers.Dropout(0.2)(h)
        x = keras.layers.Add()([keras.layers.Dense(units)(h), keras.layers.Dense(units)(x)])
    return x


def score(x, **options):
    return keras.layers.Dense(1, dtype="float32")(deep(x, **options))


def sample(z):
    z = keras.layers.BatchNormalization(momentum=0.9, synchronized=True)(deep(z))
    return keras.layers.Dense(2, dtype="float32")(z)


def of_points(replicas, *, remat, **parts):
    """Training with noise, batch statistics, two penalties on slopes and a normalization."""
    given = {"architecture": Layers(generator=sample, critic=score), **parts}
    given.setdefault("constraints", [constraint(name, **options) for name, options in WEAK.items()])
    found = trained(replicas, count=3, rematerialize=remat, **given)
    assert all(np.isfinite(value).all() for value in (*found.values.values(), found.rows))
    return found


@pytest.fixture(scope="module")
def kept(cpus):
    return of_points(0, remat=False)


@pytest.mark.slow
@pytest.mark.parametrize(("replicas", "jit"), [(0, "off"), (2, "off"), (0, "on")])
def test_it_trains_the_same(kept, replicas, jit):
    assert_same(kept, of_points(replicas, remat=True, jit=jit), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_it_trains_the_same_in_microbatches():
    parts = {"architecture": Layers(critic=score), "constraints": [constraint("gradient_penalty", weight=0.1)]}
    whole = of_points(0, remat=False, **parts)
    assert_same(whole, of_points(0, remat=True, microbatches=3, **parts), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("resnet", {"channels": 4, "attention": 8, "labels": "projection"}),
        ("biggan", {"channels": 4}),
        ("r3gan", {"channels": 16, "labels": "projection"}),
    ],
)
def test_architectures_with_labels_train_the_same(name, sizes):
    def one(remat):
        return trained(
            0,
            count=1,
            dataset=ganlab.component("datasets", "glyphs")(characters="AB"),
            architecture=ganlab.component("architectures", name)(**sizes),
            constraints=[constraint("r1", gamma=0.1)],
            batch_size=4,
            rematerialize=remat,
        )

    assert_same(one(False), one(True), rtol=1e-4, atol=1e-5)


def peak(constraints, *, remat):
    """The most bytes of tensors at once in a training step, counted."""
    architecture = Layers(critic=lambda x: score(x, depth=16, units=64))
    experiment = small(
        architecture=architecture, constraints=constraints, batch_size=1024, steps=1, rematerialize=remat
    )
    return count(Trainer(experiment).graph()).peak


@pytest.mark.slow
@pytest.mark.parametrize("names", [(), ("r1",)], ids=["loss", "penalty"])
def test_a_deep_network_takes_less_than_half_the_memory(names):
    constraints = [constraint(name) for name in names]
    assert peak(constraints, remat=True) < 0.5 * peak(constraints, remat=False)


def test_a_model_of_a_class_of_its_own_is_refused_by_name():
    class Own(keras.Model):
        def __init__(self):
            super().__init__(name="own")
            self.dense = keras.layers.Dense(1)

        def call(self, x):
            return self.dense(x)

    class Owns(Layers):
        def critic(self, sample_shape):
            return Own()

    with pytest.raises(ganlab.IncompatibleError, match=r"critic 'own' .* \(Own\).*experiment\.rematerialize = False"):
        Trainer(small(architecture=Owns(), rematerialize=True))


def test_first_and_second_derivatives_are_those_of_the_function():
    weights = np.random.default_rng(0).normal(size=(2, 3))

    def cubes(x, w):
        return [tf.reduce_sum(tf.matmul(x, w) ** 3, axis=1), tf.reduce_sum(x, axis=1)]

    @tf.function
    def derivatives(x, w, again):
        function = recomputed(cubes, 1) if again else cubes
        first = tf.gradients(function(x, w)[0], [x, w])
        return [*first, *tf.gradients(tf.reduce_sum(first[0] ** 2), [x, w])]

    x = tf.constant([[1.0, -2.0], [0.5, 3.0]], tf.float64)
    w = tf.constant(weights)
    for found, expected in zip(derivatives(x, w, True), derivatives(x, w, False), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    # By hand: the gradient of sum (x w)^3 by x is 3 (x w)^2 w'.
    np.testing.assert_allclose(derivatives(x, w, True)[0], 3 * (x.numpy() @ weights) ** 2 @ weights.T, rtol=1e-12)
