"""Operations that TensorFlow differentiates wrongly or not at all are refused before training, by layer and line."""

import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf
from small import Layers, Points, constraint, small

import ganlab
from ganlab import layers
from ganlab.training.graph.state import TrainingState
from ganlab.training.graph.trainer import Trainer

pytestmark = pytest.mark.usefixtures("cpus")

SHAPE = (4, 4, 2)


class Block(keras.layers.Layer):
    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        self.parts = [keras.layers.Dense(2), inner]

    def call(self, x):
        for part in self.parts:
            x = part(x)
        return x


class Own(keras.Model):
    def __init__(self, inner):
        super().__init__()
        self.inner = {"layer": inner}
        self.score = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(1)])

    def call(self, x):
        return self.score(self.inner["layer"](x))


class Doubled(keras.layers.Layer):
    def call(self, x):
        return tf.image.resize(x, (8, 8))  # in a call


class Right(keras.layers.LayerNormalization):
    """A layer that inherits from a Keras layer and computes something else."""

    def call(self, x):
        return x / tf.sqrt(1.0 + tf.reduce_mean(tf.square(x), -1, keepdims=True))


def lambda_(function, shape=SHAPE):
    return keras.layers.Lambda(function, output_shape=shape, name="mine")


def of(layer):
    """An experiment whose critic has this layer."""

    def critic(x):
        x = layer(keras.layers.Dense(2, name="first")(x))
        return keras.layers.Dense(1)(keras.layers.Flatten()(x))

    return Layers(critic=critic, generator=_generator)


def _generator(z):
    return keras.layers.Reshape(SHAPE)(keras.layers.Dense(32)(z))


def experiment(architecture, *constraints, **parts):
    dataset = Points(np.random.default_rng(0).uniform(-1, 1, (24, *SHAPE)))
    return small(0, dataset=dataset, architecture=architecture, constraints=list(constraints), **parts)


def penalty(**arguments):
    return constraint("gradient_penalty", **arguments)


def line(mark):
    lines = inspect.getsource(inspect.getmodule(line)).splitlines()
    return next(i for i, code in enumerate(lines, 1) if code.endswith(f"# {mark}"))


LAYER = r"'n' \(LayerNormalization\) .*constraints\.gradient_penalty.*Use ganlab\.layers\.LayerNormalization"
UP = r"'u' .*ganlab\.layers\.UpSampling2D"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: keras.layers.LayerNormalization(name="n"), LAYER),
        (lambda: keras.layers.LayerNormalization(axis=[1, 2, 3], name="n"), LAYER),
        (lambda: keras.layers.GroupNormalization(2, name="g"), r"'g' .*Use ganlab\.layers\.GroupNormalization"),
        (lambda: keras.layers.GroupNormalization(-1, name="g"), r"'g' .*ganlab\.layers\.InstanceNormalization"),
        (lambda: keras.layers.UpSampling2D(2, interpolation="bilinear", name="u"), UP),
        (lambda: keras.layers.UpSampling2D(2, interpolation="bicubic", name="u"), UP),
        (lambda: keras.layers.Resizing(3, 3, name="r"), r"'r' .*ganlab\.layers\.Resizing"),
        (lambda: keras.layers.Resizing(3, 3, interpolation="nearest", name="r"), r"'r' .*ganlab\.layers\.Resizing"),
        (lambda: keras.Sequential([keras.Sequential([keras.layers.LayerNormalization(name="n")])]), LAYER),
        (lambda: keras.layers.TimeDistributed(keras.layers.LayerNormalization(name="n")), LAYER),
        (lambda: Block(keras.layers.LayerNormalization(name="n")), LAYER),
        (lambda: Block(keras.layers.TimeDistributed(Block(keras.layers.LayerNormalization(name="n")))), LAYER),
    ],
)
def test_keras_layers_that_are_wrong_twice(make, message):
    with pytest.raises(ganlab.IncompatibleError, match=rf"The critic's layer {message}"):
        TrainingState(experiment(of(make()), penalty()))


def test_layers_of_a_critic_of_its_own_class():
    class Model(Layers):
        def critic(self, sample_shape):
            return Own(keras.layers.LayerNormalization(name="n"))

    with pytest.raises(ganlab.IncompatibleError, match=LAYER):
        TrainingState(experiment(Model(generator=_generator), penalty()))


@pytest.mark.parametrize(
    ("make", "precision"),
    [
        (layers.LayerNormalization, "mixed_bfloat16"),
        pytest.param(lambda: layers.GroupNormalization(2), "float32", marks=pytest.mark.slow),
        pytest.param(layers.InstanceNormalization, "float32", marks=pytest.mark.slow),
        pytest.param(
            lambda: layers.UpSampling2D(2, interpolation="bilinear"), "mixed_bfloat16", marks=pytest.mark.slow
        ),
        (lambda: layers.Resizing(3, 5), "float32"),
        pytest.param(lambda: keras.layers.UpSampling2D(2), "float32", marks=pytest.mark.slow),
        (Right, "float32"),
    ],
    ids=["layer", "group", "instance", "up", "resizing", "nearest", "inherits"],
)
def test_layers_that_are_right_twice_are_trained(make, precision):
    rows = Trainer(experiment(of(make()), penalty(), precision=precision)).train(1)
    assert np.isfinite(rows).all()


@pytest.mark.parametrize(
    "constraints",
    [
        [],
        ["spectral_norm"],
        ["alp"],
        *(
            pytest.param([name], marks=pytest.mark.slow)
            for name in ("weight_clipping", "consistency", "finite_difference_penalty")
        ),
    ],
)
def test_layers_that_are_right_once_go_with_constraints_that_do_not_differentiate(constraints):
    block = keras.Sequential(
        [keras.layers.LayerNormalization(), Doubled(), keras.layers.Activation("softsign"), layers.Dropout(0.5)]
    )
    Trainer(experiment(of(block), *map(constraint, constraints))).trace()


class Untrue(ganlab.Constraint):
    """Declares that it does not differentiate, but does."""

    differentiates = False

    def penalty(self, critic, batch, state, replica):
        return ganlab.functional.slopes(critic, batch.real)


def _moments(x):
    mean, variance = tf.nn.moments(x, [1, 2, 3], keepdims=True)  # moments
    return (x - mean) * tf.math.rsqrt(variance + 1e-3)


def _in_a_branch(x):
    return tf.cond(x[0, 0, 0, 0] > 0, lambda: tf.image.resize(x, (4, 4), "bicubic"), lambda: 2 * x)  # branch


@tf.function
def _in_a_function(x):
    return tf.image.resize(x, (4, 4))  # function


# By the mark of its line, code of a lambda layer and what is said of it.
LAMBDAS = {
    "bilinear": lambda x: tf.image.resize(x, (4, 4)),  # bilinear
    "nearest": lambda x: tf.image.resize(x, (4, 4), "nearest"),  # nearest
    "area": lambda x: tf.image.resize(x, (4, 4), "area"),  # area
    "antialias": lambda x: tf.image.resize(x, (4, 4), antialias=True),  # antialias
    "crop": lambda x: tf.image.crop_and_resize(x, [[0.0, 0, 1, 1]] * 12, [*range(12)], (4, 4)),  # crop
    "responses": lambda x: tf.nn.local_response_normalization(x),  # responses
    "moments": _moments,
    "branch": _in_a_branch,
    "python": lambda x: tf.ensure_shape(tf.numpy_function(np.tanh, [x], tf.float32), x.shape),  # python
    "hsv": lambda x: tf.image.hsv_to_rgb(tf.repeat(x[..., :1], 3, -1)),  # hsv
}
SAID = {
    "bilinear": "ResizeBilinear.*second derivative.*silently.*ganlab.functional.resize",
    "nearest": "cannot differentiate twice.*ganlab.functional.resize",
    "area": "ResizeArea, which TensorFlow cannot differentiate[.].*ganlab.functional.resize",
    "antialias": "ScaleAndTranslate.*ganlab.functional.resize",
    "crop": "CropAndResize, which TensorFlow cannot differentiate twice",
    "responses": "LRN, which TensorFlow cannot differentiate twice",
    "moments": "ganlab.functional.moments",
    "branch": "ResizeBicubic",
    "python": "PyFunc, whose derivative TensorFlow takes to be zero, silently.*tf.stop_gradient",
    "hsv": "HSVToRGB, whose derivative TensorFlow takes to be zero, silently.*tf.stop_gradient",
}


def in_lambda(name):
    return lambda: lambda_(LAMBDAS[name], (4, 4, 3) if name == "hsv" else SHAPE)


CODE = {
    "call": (Doubled, r"\(Doubled\)", "in a call", "ResizeBilinear.*silently.*ganlab.functional.resize"),
    "softsign": (lambda: keras.layers.Activation("softsign", name="s"), r"'s' \(Activation\)", None, r"1 \+ tf.abs"),
    "softsign-of-dense": (lambda: keras.layers.Dense(2, "softsign", name="s"), r"'s' \(Dense\)", None, "Softsign"),
    **{name: (in_lambda(name), r"'mine' \(Lambda\)", name, said) for name, said in SAID.items()},
}


@pytest.mark.parametrize("name", CODE)
def test_code_that_cannot_be_differentiated_twice(name):
    make, layer, mark, message = CODE[name]
    at = rf" at .*test_differentiation\.py:{line(mark)} " if mark else " "
    with pytest.raises(ganlab.IncompatibleError, match=rf"^The critic's layer .*{layer}{at}.*{message}"):
        Trainer(experiment(of(make()), penalty())).trace()


@pytest.mark.parametrize(
    ("name", "constraints", "settings"),
    [
        ("bilinear", lambda: [penalty(every=3)], {}),  # within a branch
        ("moments", lambda: [penalty(every=3)], {}),
        ("softsign", lambda: [penalty(every=3)], {}),
        ("branch", lambda: [penalty(every=3)], {}),
        ("bilinear", lambda: [constraint("gradient_normalization")], {}),
        ("moments", lambda: [constraint("gradient_normalization")], {}),
        ("bilinear", lambda: [Untrue()], {}),
        ("moments", lambda: [penalty()], {"jit": "on"}),
        ("softsign", lambda: [penalty()], {"jit": "on"}),
    ],
)
def test_code_is_found_however_it_is_differentiated(name, constraints, settings):
    make, layer, mark, _ = CODE[name]
    at = rf" at .*:{line(mark)} " if mark else " "
    with pytest.raises(ganlab.IncompatibleError, match=rf"The critic's layer .*{layer}{at}"):
        Trainer(experiment(of(make()), *constraints(), **settings)).trace()


class Resizes(ganlab.Constraint):
    """A constraint whose own code cannot be differentiated twice."""

    def penalty(self, critic, batch, state, replica):
        return ganlab.functional.slopes(lambda x: critic(tf.image.resize(x, (4, 4))), batch.real)  # constraint


def test_code_of_a_constraint_has_its_line():
    with pytest.raises(ganlab.IncompatibleError, match=rf"step at .*tion\.py:{line('constraint')} uses ResizeBilinear"):
        Trainer(experiment(of(Right()), Resizes())).trace()


def test_operations_of_keras_are_found():
    def critic(x):
        x = keras.ops.softsign(keras.layers.Dense(2)(x))
        return keras.layers.Dense(1)(keras.layers.Flatten()(x))

    with pytest.raises(ganlab.IncompatibleError, match=r"The critic .*Softsign, which TensorFlow cannot"):
        Trainer(experiment(Layers(critic=critic, generator=_generator), penalty())).trace()


def test_code_in_a_function_of_tensorflow_has_its_line():
    with pytest.raises(ganlab.IncompatibleError, match=rf"test_differentiation\.py:{line('function')} uses ResizeBil"):
        Trainer(experiment(of(lambda_(_in_a_function)), penalty())).trace()


def test_a_generator_is_differentiated_once():
    def generator(z):
        z = keras.layers.LayerNormalization()(keras.layers.Dense(32, "softsign")(z))
        return lambda_(lambda x: tf.image.resize(x, SHAPE[:2]))(keras.layers.Reshape((2, 8, 2))(z))

    Trainer(experiment(Layers(generator=generator, critic=of(Right())._critic), penalty())).trace()


def test_a_generator_without_a_gradient():
    def generator(z):
        x = keras.layers.Reshape((8, 2, 2))(keras.layers.Dense(32)(z))
        return lambda_(lambda x: tf.image.resize(x, SHAPE[:2], "area"))(x)

    with pytest.raises(ganlab.IncompatibleError, match=r"The generator's layer 'mine' \(Lambda\) at .*ResizeArea"):
        Trainer(experiment(Layers(generator=generator, critic=of(Right())._critic))).trace()


@tf.custom_gradient
def _doubled(x):
    return tf.ensure_shape(tf.numpy_function(lambda v: 2 * v, [x], tf.float32), x.shape), lambda dy: 2 * dy


@pytest.mark.parametrize("function", [_doubled, lambda x: x - tf.stop_gradient(tf.reduce_mean(x))])
def test_gradients_of_the_users_own_and_stopped_on_purpose_are_accepted(function):
    Trainer(experiment(of(lambda_(function)), penalty())).trace()
