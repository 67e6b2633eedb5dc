"""Certificates computed by hand, compared with numpy, and above every slope that a search finds."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from explicit import convolution_matrix, norm

import ganlab
from ganlab import lipschitz
from ganlab.functional import named_weights
from ganlab.layers import Dropout, FullSort, GaussianNoise, GroupSort, noise_from
from ganlab.lipschitz import ACTIVATION_SLOPES

pytestmark = pytest.mark.usefixtures("cpus", "same_numbers")

RANDOM = np.random.default_rng(0)


def weights_of(model, scale=1.0):
    """Random values for a model's trained weights, which are also assigned."""
    for variable in model.trainable_variables:
        variable.assign(scale * RANDOM.normal(size=variable.shape))
    return {name: tf.convert_to_tensor(variable) for name, variable in named_weights(model).items()}


def bound(model, weights=None):
    certificate = lipschitz.certificate(model)
    assert certificate.missing is None
    return certificate(weights_of(model) if weights is None else weights)


def chain(*layers, shape=(6,)):
    return keras.Sequential([keras.Input(shape), *layers])


def stretched(model, n=1000, size=1.0):
    """The largest of n slopes between near and far pairs, and of gradients at a hundred points."""
    x = size * RANDOM.normal(size=(n, *model.input_shape[1:])).astype(np.float32)
    near = x + 10.0 ** RANDOM.uniform(-2, 1, size=(n, *[1] * (x.ndim - 1))) * RANDOM.normal(size=x.shape)
    near = near.astype(np.float32)
    with tf.GradientTape() as tape:
        points = tf.constant(x[:100])
        tape.watch(points)
        y = model(points, training=True)
    gradient = np.reshape(tape.gradient(y, points), (len(points), -1))
    moved = np.abs(np.asarray(model(x, training=True) - model(near, training=True), np.float64)).ravel()
    distance = np.linalg.norm((x - near).reshape(n, -1).astype(np.float64), axis=1)
    return max((moved / distance).max(), np.linalg.norm(gradient, axis=1).max())


class TestByHand:
    def test_a_chain_multiplies(self):
        # |diag(2, 3)| * 1/4 * |(3, 4)| = 3 * 0.25 * 5.
        model = chain(keras.layers.Dense(2, activation="sigmoid"), keras.layers.Dense(1), shape=(2,))
        first, bias, second, last = named_weights(model)
        weights = {first: np.diag([2.0, 3.0]), bias: np.ones(2), second: np.array([[3.0], [4.0]]), last: np.ones(1)}
        assert bound(model, weights) == pytest.approx(3.75, rel=1e-6)
        # The slope in the directions that are stretched most: (0, 1) by 3, the second unit by 4.
        assert bound(model, weights) >= 3 * 0.25 * 4

    def test_a_residual_branch_adds(self):
        # x + relu(x W) V: 1 + 2 * 5, then |score| = 2.
        x = keras.Input((2,))
        branch = keras.layers.Dense(2, use_bias=False, name="v")(
            keras.layers.Dense(2, use_bias=False, activation="relu", name="w")(x)
        )
        for joined in (keras.layers.Add()([x, branch]), x + branch, keras.layers.Subtract()([x, branch]), x - branch):
            model = keras.Model(x, keras.layers.Dense(1, use_bias=False, name="score")(joined))
            given = {"w": 2 * np.eye(2), "v": np.diag([5.0, 1.0]), "score": np.array([[0.0], [2.0]])}
            weights = {name: given[name.split("/")[0]] for name in named_weights(model)}
            assert bound(model, weights) == pytest.approx(22, rel=1e-6)

    def test_other_ways_to_join(self):
        x = keras.Input((2,))
        three = keras.layers.Rescaling(3.0)(x)
        four = keras.layers.Rescaling(4.0)(x)
        expected = {keras.layers.Average: 3.5, keras.layers.Concatenate: 5.0, keras.layers.Maximum: 5.0}
        for join, constant in expected.items():
            assert bound(keras.Model(x, join()([three, four]))) == pytest.approx(constant, rel=1e-6)

    def test_adding_to_a_longer_axis_repeats_the_shorter(self):
        # (a, b) -> (a + b, ..., a + b) for nine pixels: each of the two maps into nine copies, 3 + 1.
        x = keras.Input((3, 3, 1))
        pooled = keras.layers.GlobalAveragePooling2D(keepdims=True)(x)
        assert bound(keras.Model(x, keras.layers.Add()([x, pooled]))) == pytest.approx(1 + 3 * (1 / 3), rel=1e-6)

    def test_a_layer_used_twice_counts_twice(self):
        layer = keras.layers.Dense(2, use_bias=False)
        model = chain(layer, keras.layers.ReLU(), layer, shape=(2,))
        assert bound(model, {name: 3 * np.eye(2) for name in named_weights(model)}) == pytest.approx(9, rel=1e-6)

    def test_nested_models(self):
        inner = chain(keras.layers.Dense(2, use_bias=False), keras.layers.ReLU(), shape=(2,))
        x = keras.Input((2,))
        outer = keras.Model(x, inner(keras.layers.Add()([inner(x), x])))
        assert bound(outer, {name: 3 * np.eye(2) for name in named_weights(outer)}) == pytest.approx(12, rel=1e-6)

    def test_weights_that_are_not_trained_count_with_their_own_values(self):
        frozen = keras.layers.Dense(2, use_bias=False, trainable=False)
        model = chain(frozen, keras.layers.Dense(1, use_bias=False), shape=(2,))
        frozen.kernel.assign(7 * np.eye(2))
        assert bound(model, {name: np.ones((2, 1)) for name in named_weights(model)}) == pytest.approx(7 * 2**0.5)

    def test_the_bound_is_that_of_the_given_weights(self):
        model = chain(keras.layers.Dense(1), shape=(3,))
        weights = weights_of(model)
        doubled = {name: 2 * weight for name, weight in weights.items()}
        certificate = lipschitz.certificate(model)
        assert certificate(doubled) == pytest.approx(2 * certificate(weights), rel=1e-6)
        weights = {name: weight * np.nan for name, weight in weights.items()}
        assert certificate(weights) == np.inf


# Layers with a constant: the layer, the expected constant, and the input's shape.
SINGLE = {
    "linear": (lambda: keras.layers.Dense(4, activation=None), None, (3,)),
    "leaky": (lambda: keras.layers.LeakyReLU(negative_slope=3.0), 3.0, (3,)),
    "flat-leaky": (lambda: keras.layers.LeakyReLU(negative_slope=0.2), 1.0, (3,)),
    "elu": (lambda: keras.layers.ELU(alpha=2.0), 2.0, (3,)),
    "relu": (lambda: keras.layers.ReLU(max_value=1.0, negative_slope=1.5), 1.5, (3,)),
    "prelu": (lambda: keras.layers.PReLU(), None, (3,)),
    "flatten": (lambda: keras.layers.Flatten(), 1.0, (3, 2)),
    "padding": (lambda: keras.layers.ZeroPadding2D(2), 1.0, (3, 3, 1)),
    "cropping": (lambda: keras.layers.Cropping2D(1), 1.0, (4, 4, 1)),
    "mean": (lambda: keras.layers.GlobalAveragePooling2D(), 0.25, (4, 4, 2)),
    "maximum": (lambda: keras.layers.GlobalMaxPooling2D(), 1.0, (4, 4, 2)),
    "average": (lambda: keras.layers.AveragePooling2D(2), 0.5, (4, 6, 2)),
    "average-cut-off": (lambda: keras.layers.AveragePooling1D(2, padding="same"), 1.0, (5, 1)),
    "max-apart": (lambda: keras.layers.MaxPooling2D(2), 1.0, (4, 4, 2)),
    "max-overlapping": (lambda: keras.layers.MaxPooling2D(3, strides=2), 2.0, (7, 7, 1)),
    "repeat": (lambda: keras.layers.UpSampling2D((2, 3)), 6**0.5, (2, 2, 2)),
    "repeat-one-axis": (lambda: keras.layers.UpSampling1D(4), 2.0, (2, 2)),
    "vector": (lambda: keras.layers.RepeatVector(9), 3.0, (2,)),
    "rescaling": (lambda: keras.layers.Rescaling(-1.5, 7.0), 1.5, (2,)),
    "max-min": (lambda: GroupSort(2), 1.0, (4,)),
    "full-sort": (lambda: FullSort(), 1.0, (5,)),
    "dropout": (lambda: Dropout(0.2), 1.25, (5,)),
    "noise": (lambda: GaussianNoise(0.3), 1.0, (5,)),
    "softmax": (lambda: keras.layers.Softmax(), 0.5, (4,)),
    "softmax-function": (lambda: keras.layers.Activation("softmax"), 0.5, (4,)),
    "slope-of-four": (lambda: keras.layers.Dense(3, activation=keras.layers.LeakyReLU(negative_slope=4.0)), None, (3,)),
}


class OneMask:
    """The same numbers for every call, like those of one example wherever it is moved."""

    def uniform(self, shape):
        return tf.linspace(0.0, 0.999, int(np.prod(shape[1:])))[None] * tf.ones([shape[0], 1])

    def normal(self, shape):
        return tf.zeros(shape)


@pytest.mark.parametrize("case", SINGLE)
def test_constants_of_layers_hold_and_are_reached(case):
    make, constant, shape = SINGLE[case]
    model = chain(make(), shape=shape)
    found = bound(model)
    if constant is not None:
        assert found == pytest.approx(constant, rel=1e-6)
    # The norms of Jacobians at many points: never above the constant, and near it at one (for a softmax, where two
    # units are equal).
    points = np.concatenate([RANDOM.normal(size=(200, *shape)), 0.01 * RANDOM.normal(size=(20, *shape))])
    points[:5] = -np.abs(points[:5])
    if case == "max-overlapping":
        points[:, ::2, ::2] += 9  # where every window sees the same few
    points[100:110] = 0
    if case.startswith("softmax"):
        points[0] = [30.0, 30.0, 0.0, 0.0]
    with noise_from(OneMask()):
        points = tf.constant(points, tf.float32)
        with tf.GradientTape() as tape:
            tape.watch(points)
            y = model(points, training=True)
        jacobians = tape.batch_jacobian(y, points).numpy().reshape(len(points), int(np.prod(y.shape[1:])), -1)
    largest = np.linalg.norm(jacobians, 2, axis=(1, 2)).max()
    assert largest <= found * (1 + 1e-5)
    assert largest > 0.95 * found


@pytest.mark.parametrize("name", sorted(ACTIVATION_SLOPES))
def test_constants_of_activations_are_their_steepest_slopes(name):
    x = tf.constant(np.append(np.linspace(-9, 9, 300001), 0.0), tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(keras.activations.get(name)(x), tf.float64)
    quotients = np.diff(y[:-1]) / np.diff(x[:-1])
    # At zero TensorFlow's derivative of CELU is twice the function's, and slopes use TensorFlow's.
    steepest = max(np.abs(quotients).max(), np.abs(tape.gradient(y, x)).max())
    _, claimed = ACTIVATION_SLOPES[name]
    assert 0.999 * claimed < steepest <= claimed * (1 + 1e-6)
    assert bound(chain(keras.layers.Activation(name))) == pytest.approx(claimed)


@pytest.mark.parametrize(
    ("normalization", "axes"),
    [
        (lambda: keras.layers.LayerNormalization(epsilon=1e-2), (6,)),
        (lambda: keras.layers.LayerNormalization(axis=[1, 2, 3], epsilon=1e-2), (3, 3, 2)),
        (lambda: keras.layers.GroupNormalization(groups=1, epsilon=1e-2), (3, 3, 4)),
        (lambda: keras.layers.GroupNormalization(groups=2, epsilon=1e-2, scale=False), (3, 3, 4)),
        (lambda: keras.layers.RMSNormalization(epsilon=1e-2), (6,)),
    ],
    ids=["layer", "layer-image", "group-one", "group-two", "rms"],
)
def test_normalization_is_bounded_by_epsilon(normalization, axes):
    model = chain(normalization(), shape=axes)
    weights = weights_of(model)
    gammas = [w for n, w in weights.items() if "gamma" in n or "scale" in n]
    scale = max((float(np.abs(g).max()) for g in gammas), default=1.0)
    found = bound(model, weights)
    assert found == pytest.approx(10 * scale, rel=1e-5)
    largest = 0.0
    for size in (1e-6, 0.1, 1.0):
        points = tf.constant(size * RANDOM.normal(size=(20, *axes)), tf.float32)
        with tf.GradientTape() as tape:
            tape.watch(points)
            y = model(points)
        jacobians = tape.batch_jacobian(y, points).numpy().reshape(20, np.prod(axes), -1)
        largest = max(largest, np.linalg.norm(jacobians, 2, axis=(1, 2)).max())
    assert 0.6 * found < largest <= found * (1 + 1e-4)


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize(("length", "pool", "stride"), [(7, 3, 1), (8, 3, 2), (6, 2, 3), (5, 4, 2)])
def test_average_pooling_is_a_convolution_with_an_even_kernel(length, pool, stride, padding):
    layer = keras.layers.AveragePooling2D(pool, strides=stride, padding=padding)
    model = chain(layer, shape=(length, length + 1, 1))
    geometry = {"strides": (stride,) * 2, "dilation": (1, 1), "padding": padding}
    ones = convolution_matrix(np.ones((pool, pool, 1, 1)), (length, length + 1, 1), model.output_shape[1:], **geometry)
    expected = norm(ones / ones.sum(axis=1, keepdims=True))
    assert bound(model) == pytest.approx(expected, rel=1e-6)


class TestMissing:
    @pytest.mark.parametrize(
        ("layer", "reason"),
        [
            (lambda: keras.layers.Lambda(lambda x: x**2, name="square"), r"'square' \(Lambda\): .*lipschitz_constant"),
            (lambda: keras.layers.Dense(3, activation="exponential", name="up"), r"'up' .* activation 'exponential'"),
            (lambda: keras.layers.BatchNormalization(name="batch"), r"layer 'batch' .* mixes the examples"),
            (lambda: keras.layers.ReLU(threshold=1.0, name="jump"), r"layer 'jump' \(ReLU\): a rectifier .* jumps"),
            (lambda: type("Mine", (keras.layers.Dense,), {})(2, name="mine"), r"layer 'mine' \(Mine\)"),
            (lambda: keras.layers.UnitNormalization(name="unit"), r"layer 'unit' \(UnitNormalization\)"),
        ],
        ids=["lambda", "activation", "batch", "jump", "subclass", "unit"],
    )
    def test_the_layer_is_named(self, layer, reason):
        inner = chain(layer(), keras.layers.Dense(1))
        inner.name = "inner"
        for model in (inner, chain(keras.layers.Dense(6), inner)):
            certificate = lipschitz.certificate(model)
            assert certificate(weights_of(model)) is None
            assert re.search(reason, certificate.missing)
        assert "layer 'inner'" in certificate.missing

    def test_a_class_of_its_own_cannot_be_walked(self):
        class Critic(keras.Model):
            def __init__(self):
                super().__init__()
                self.score = keras.layers.Dense(1)

            def call(self, x):
                return self.score(x) ** 2

        critic = Critic()
        critic(keras.Input((3,)))
        certificate = lipschitz.certificate(critic)
        assert certificate(weights_of(critic)) is None
        assert "a model of a class of its own (Critic)" in certificate.missing

    def test_a_functional_model_that_computes_something_else_is_not_walked(self):
        class Squared(keras.Model):
            def call(self, x, training=None):
                return super().call(x) ** 2

        x = keras.Input((3,))
        assert lipschitz.certificate(Squared(x, keras.layers.Dense(1)(x))).missing

    def test_products_have_no_constant(self):
        x = keras.Input((3,))
        for product in (keras.layers.Multiply()([x, x]), x * x, keras.layers.Dot(1)([x, x])):
            assert "layer" in lipschitz.certificate(keras.Model(x, product)).missing


def test_custom_layers_declare_their_constants():
    class Halved(keras.layers.Layer):
        lipschitz_constant = 0.5

        def call(self, x):
            return x / 2

    class Sum(keras.layers.Layer):
        lipschitz_constant = 2**0.5  # of two inputs seen as one vector

        def call(self, x):
            return x[0] + x[1]

    assert bound(chain(Halved(), Halved())) == pytest.approx(0.25)
    x = keras.Input((3,))
    assert bound(keras.Model(x, Sum()([x, Halved()(x)]))) == pytest.approx(2**0.5 * (1 + 0.25) ** 0.5)


CRITICS = {
    "mlp": ("mlp", {"width": 16}, (2,)),
    "mlp-leaky": ("mlp", {"width": 16, "activation": "leaky_relu"}, (5,)),
    "mlp-softplus": ("mlp", {"width": 16, "activation": "softplus"}, (5,)),
    "mlp-max-min": ("mlp", {"width": 16, "activation": "max_min"}, (2,)),
    "dcgan": ("dcgan", {"channels": 4}, (8, 8, 1)),
    "dcgan-layer": ("dcgan", {"channels": 4, "critic_normalization": "layer"}, (14, 14, 2)),
    "resnet": ("resnet", {"channels": 3}, (32, 32, 1)),
    "resnet-layer": ("resnet", {"channels": 3, "critic_normalization": "layer"}, (32, 32, 1)),
}


@pytest.mark.parametrize("case", CRITICS)
def test_certificates_of_the_architectures_are_above_every_slope(case):
    name, arguments, shape = CRITICS[case]
    critic = ganlab.component("architectures", name)(**arguments).critic(shape)
    found = bound(critic, weights_of(critic, scale=0.3))
    assert np.isfinite(found)
    slope = stretched(critic)
    assert 0 < slope <= found
    if case in ("mlp", "mlp-leaky", "mlp-max-min", "dcgan"):
        assert slope > 1e-3 * found


def test_dropout_in_training_is_covered():
    critic = ganlab.component("architectures", "mlp")(width=16, depth=2, dropout=0.3).critic((2,))
    plain = ganlab.component("architectures", "mlp")(width=16, depth=2).critic((2,))
    weights = weights_of(critic)
    assert bound(critic, weights) == pytest.approx(bound(plain, weights) / 0.7**2, rel=1e-6)


def test_mixed_precision_has_the_bound_of_its_float32_weights(precision):
    precision("mixed_bfloat16")
    critic = ganlab.component("architectures", "dcgan")(channels=4).critic((8, 8, 1))
    precision("float32")
    plain = ganlab.component("architectures", "dcgan")(channels=4).critic((8, 8, 1))
    weights = weights_of(critic)
    assert bound(critic, weights) == bound(plain, weights)


@pytest.mark.parametrize("labels", ["projection", "concatenation", "classifier"])
def test_a_conditional_critic_is_bounded_at_every_label(labels):
    classes = 3
    critic = ganlab.component("architectures", "mlp")(width=8, depth=2, labels=labels).critic((2,), classes)
    weights = weights_of(critic)
    found = bound(critic, weights)
    x, label = tf.random.stateless_normal((300, 2), [1, 2]), tf.one_hot(tf.range(300) % classes, classes)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = critic([x, label])
        scores = y["score"] if labels == "classifier" else y
    largest = np.linalg.norm(tape.gradient(scores, x), axis=1).max()
    # Two hidden layers of eight rectifiers: far less than a factor of 20 is lost.
    assert largest <= found <= 20 * largest
