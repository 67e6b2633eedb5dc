"""No certificate is below what an attack finds on random critics of every layer that ganlab has."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from ganlab import layers
from ganlab.functional import named_weights
from ganlab.lipschitz import attacked_constant, certificate, ladder

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("cpus")]

# Critics of each layer and starts of each attack. 10 and 10,000 passed for every layer, 200 critics in all.
COUNT, STARTS = 1, 1000

POINTS, IMAGES = (3,), (4, 4, 2)


def body(*made):
    """Layers one after the other."""

    def applied(x):
        for layer in made:
            x = layer(x)
        return x

    return applied


def residual(*made):
    return lambda x: layers.LipschitzResidual()([x, body(*made)(x)])


dense, convolution = keras.layers.Dense, keras.layers.Conv2D
LAYERS = {
    "AOLDense": (POINTS, lambda: body(layers.AOLDense(6), layers.GroupSort())),
    "AOLConv2D": (IMAGES, lambda: body(layers.AOLConv2D(4, 3, strides=2), layers.GroupSort())),
    "SLLDense": (POINTS, lambda: body(layers.SLLDense(8))),
    "SLLConv2D": (IMAGES, lambda: body(layers.SLLConv2D(4))),
    "CPLDense": (POINTS, lambda: body(layers.CPLDense(5))),
    "CPLConv2D": (IMAGES, lambda: body(layers.CPLConv2D(3))),
    "SkewConv2D": (IMAGES, lambda: body(layers.SkewConv2D(4), layers.GroupSort())),
    "OrthogonalConv2D": (IMAGES, lambda: body(layers.OrthogonalConv2D(4), layers.GroupSort())),
    "SandwichDense": (POINTS, lambda: body(layers.SandwichDense(7), layers.SandwichDense(4))),
    "L2SelfAttention": (IMAGES, lambda: residual(layers.L2SelfAttention())),
    "HouseholderActivation": (POINTS, lambda: body(layers.AOLDense(4), layers.HouseholderActivation())),
    "LayerCentering": (IMAGES, lambda: body(convolution(3, 3), layers.LayerCentering())),
    "LipschitzResidual": (POINTS, lambda: residual(dense(8, activation="tanh"), dense(3))),
    "InvertibleDownsampling": (IMAGES, lambda: body(layers.InvertibleDownsampling(), convolution(4, 1))),
    "L2NormPooling2D": (IMAGES, lambda: body(convolution(3, 3, padding="same"), layers.L2NormPooling2D())),
    "ScaledAveragePooling2D": (IMAGES, lambda: body(convolution(3, 3), layers.ScaledAveragePooling2D())),
    "GroupSort": (POINTS, lambda: body(dense(8), layers.GroupSort(4), dense(4))),
    "FullSort": (POINTS, lambda: body(dense(6), layers.FullSort(), dense(4))),
    "UpSampling2D": (IMAGES, lambda: body(layers.UpSampling2D(2), convolution(2, 3, activation="relu"))),
    "Resizing": (IMAGES, lambda: body(layers.Resizing(3, 3), convolution(2, 2, activation="tanh"))),
}


def randomized(name, seed):
    """A critic of a layer, between others, with random weights."""
    shape, make = LAYERS[name]
    keras.utils.set_random_seed(seed)
    x = keras.Input(shape)
    model = keras.Model(x, dense(1)(keras.layers.Flatten()(make()(x))))
    random = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        variable.assign(random.normal(size=variable.shape) * random.uniform(0.2, 2))
    return model


@pytest.mark.parametrize("name", LAYERS)
def test_no_certificate_falls_below_an_attack(name):
    random = np.random.default_rng(0)
    for seed in range(COUNT):
        model = randomized(name, seed)
        starts = 2 * random.standard_normal((STARTS, *model.input_shape[1:]))
        found = attacked_constant(lambda x, model=model: tf.reshape(model(x), [-1]), starts, seed=seed, steps=60)
        weights = {name: np.asarray(variable) for name, variable in named_weights(model).items()}
        proven = [certificate(model)(weights)]
        proven += [rung.bound for rung in ladder(model, weights, seconds=1, rungs=("averaged", "semidefinite"))]
        assert found > 0
        assert all(bound is None or found <= bound * (1 + 1e-4) for bound in proven), (seed, found, proven)
        assert proven[0] is not None
