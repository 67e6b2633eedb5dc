"""Constraints on differences of scores, and transforms by slopes, against numpy in float64."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from prepared import Alone, batch, check_gradients, constraint, critic_of, gradients, linear, scores

import ganlab


class Drawn(Alone):
    """A replica without peers, whose draws are numpy's in the order of the calls."""

    def __init__(self, seed=5):
        super().__init__()
        self._random = np.random.default_rng(seed)

    def uniform(self, shape):
        return tf.constant(self._random.uniform(size=shape), tf.float32)

    def normal(self, shape):
        return tf.constant(self._random.normal(size=shape), tf.float32)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


RANDOM = np.random.default_rng(3)
WEIGHTS = [RANDOM.normal(size=shape) for shape in [(3, 5), (5,), (5,)]]
REAL, FAKE = RANDOM.normal(size=(2, 6, 3))


def alp(weights, weight=10.0, target=1.0, xi=10.0, shortest=0.1, longest=10.0):
    """The paper's penalty; the pairs are those of WEIGHTS, whatever the weights."""
    random, total = np.random.default_rng(5), 0.0
    for x in (REAL, FAKE):
        distance = shortest + (longest - shortest) * random.uniform(size=len(x))
        start = unit(random.uniform(size=x.shape) - 0.5)
        far = x + xi * start
        away = np.sign(scores(WEIGHTS, far) - scores(WEIGHTS, x))[:, None] * gradients(WEIGHTS, far)
        other = x + distance[:, None] * unit(away)
        slope = np.abs(scores(weights, other) - scores(weights, x)) / distance
        total += np.sum(weight * np.maximum(0, slope - target) ** 2) / 2
    return total


def finite_difference_penalty(weights, weight=10.0, target=1.0, points="between", sigma=0.01, directions=1):
    random = np.random.default_rng(5)
    x = {"real": REAL, "fake": FAKE}.get(points)
    if x is None:
        share = random.uniform(size=len(REAL))[:, None]
        x = share * REAL + (1 - share) * FAKE
    noise = [random.normal(size=x.shape) for _ in range(directions)]
    squares = [((scores(weights, x + sigma * n) - scores(weights, x)) / sigma) ** 2 for n in noise]
    # The mean length of a Gaussian vector of k coordinates: .798, 1.253, 1.596 for k = 1, 2, 3.
    shrinkage = {1: math.sqrt(2 / math.pi), 3: math.sqrt(8 / math.pi) / math.sqrt(3)}[directions]
    return np.sum(weight * (np.sqrt(np.mean(squares, axis=0)) - target / shrinkage) ** 2)


CASES = [
    (alp, {"xi": 1.0, "longest": 0.5}),
    (alp, {"xi": 1.0, "longest": 0.5, "target": 0.5, "weight": 3.0}),
    (finite_difference_penalty, {"sigma": 0.3}),
    (finite_difference_penalty, {"sigma": 0.3, "directions": 3, "points": "fake"}),
    (finite_difference_penalty, {"sigma": 0.3, "points": "real", "target": 0.0, "weight": 2.0}),
]


@pytest.mark.parametrize(("by_numpy", "arguments"), CASES, ids=lambda each: getattr(each, "__name__", str(each)))
def test_value_and_gradient_by_the_weights(by_numpy, arguments):
    made, replica = constraint(by_numpy.__name__, **arguments), Drawn()
    critic, variables = critic_of(WEIGHTS)
    with tf.GradientTape() as tape:
        value = made.penalty(critic, batch(REAL, FAKE), {}, replica)
        total = tf.reduce_sum(value)
    found = tape.gradient(total, variables)

    assert value.shape == (6,)
    assert float(total) == pytest.approx(by_numpy(WEIGHTS, **arguments), rel=1e-5)
    check_gradients(lambda weights: by_numpy(weights, **arguments), WEIGHTS, found)


def test_a_critic_with_keras_layer_normalization_has_the_right_gradient():
    # Under a penalty on the gradient itself it is 3 to 9% off, because TensorFlow's second derivative lacks a term.
    normalize, sigma, noise = keras.layers.LayerNormalization(center=False, scale=False), 0.3, Drawn().normal((6, 3))
    variables = [tf.Variable(value, dtype=tf.float32) for value in WEIGHTS]

    def critic(x):
        kernel, bias, last = variables
        return tf.linalg.matvec(tf.tanh(normalize(x @ kernel + bias)), last)

    def by_numpy(weights):
        def score(x):
            kernel, bias, last = weights
            hidden = x @ kernel + bias
            center = hidden - hidden.mean(axis=1, keepdims=True)
            return np.tanh(center / np.sqrt(np.mean(center**2, axis=1, keepdims=True) + normalize.epsilon)) @ last

        return np.sum(2.0 * ((score(REAL + sigma * noise.numpy()) - score(REAL)) / sigma) ** 2)

    made = constraint("finite_difference_penalty", points="real", target=0.0, weight=2.0, sigma=sigma)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(made.penalty(critic, batch(REAL, FAKE), {}, Drawn()))
    assert float(total) == pytest.approx(by_numpy(WEIGHTS), rel=1e-5)
    check_gradients(by_numpy, WEIGHTS, tape.gradient(total, variables))


class TestALP:
    def test_a_linear_critics_pairs_lie_along_its_gradient(self):
        # The slope of (3, 4)x along its gradient is 5, at any distance: 10 (5 - 1)^2.
        replica = Drawn()
        value = constraint("alp").penalty(linear(3.0, 4.0), batch(np.ones((2, 2)), np.zeros((2, 2))), {}, replica)
        np.testing.assert_allclose(value, [160.0, 160.0], rtol=1e-5)
        np.testing.assert_allclose(replica.logged["slope"][0], [5.0, 5.0], rtol=1e-5)
        np.testing.assert_array_equal(replica.logged["exceeding"][0], [1.0, 1.0])

    def test_the_row_is_the_mean_of_its_two_examples(self):
        # Slope 3 around the real example and 0.5, which costs nothing, around the sample.
        critic = lambda x: tf.where(x[:, 0] > 50, 3.0 * x[:, 0], 0.5 * x[:, 0])  # noqa: E731
        data = batch([[100.0]], [[0.0]])
        value = constraint("alp").penalty(critic, data, {}, Drawn())
        np.testing.assert_allclose(value, [10 * (3 - 1) ** 2 / 2], rtol=1e-4)

    def test_a_flat_critic_costs_nothing_and_has_finite_gradients(self):
        scale = tf.Variable(0.0)
        with tf.GradientTape() as tape:
            value = constraint("alp").penalty(lambda x: scale * x[:, 0], batch([[1.0]], [[2.0]]), {}, Drawn())
        np.testing.assert_array_equal(value, [0.0])
        assert tape.gradient(value, scale).numpy() == 0.0

    def test_distances_out_of_order_are_refused(self):
        with pytest.raises(ganlab.ConfigError, match=r"constraints\.alp\.longest = 0\.05 is below shortest = 0\.1\."):
            constraint("alp", longest=0.05)


class TestFiniteDifferencePenalty:
    @pytest.mark.parametrize("directions", [1, 2, 5])
    def test_the_mean_over_noise_is_the_gradient_penalty_and_a_constant(self, directions):
        # A linear critic of slope 3 in four dimensions, at 40,000 points; the error is five standard deviations.
        data = batch(*np.zeros((2, 40_000, 4)))
        made = constraint("finite_difference_penalty", directions=directions, sigma=1.0)
        value = made.penalty(linear(1.0, -2.0, 2.0, 0.0), data, {}, replica := Drawn()).numpy().astype(float)
        shrinkage = math.sqrt(2 / directions) * math.gamma((directions + 1) / 2) / math.gamma(directions / 2)
        error = 5 * value.std() / len(value) ** 0.5
        assert value.mean() == pytest.approx(10 * ((3 - 1) ** 2 + 1 / shrinkage**2 - 1), abs=error)
        slopes = replica.logged["slope"][0].astype(float)
        assert slopes.mean() == pytest.approx(3, abs=5 * slopes.std() / len(slopes) ** 0.5)


class TestGraN:
    def test_a_linear_critics_slope_and_that_of_a_flat_one(self):
        # n^2 / (n^2 + epsilon) with n = 3, and 0.
        x = tf.constant([[2.0]])
        for slope, expected in ((3.0, 9 / 9.5), (0.0, 0.0)):
            with tf.GradientTape() as tape:
                tape.watch(x)
                score = constraint("gran", epsilon=0.5).transform(lambda x, s=slope: s * x[:, 0])(x)
            np.testing.assert_allclose(tape.gradient(score, x), [[expected]], rtol=1e-5, atol=1e-6)

    def test_value_and_gradient_by_the_weights(self):
        critic, variables = critic_of(WEIGHTS)

        def by_numpy(weights):
            square = np.sum(gradients(weights, FAKE) ** 2, axis=1)
            return np.sum(scores(weights, FAKE) * np.sqrt(square) / (square + 0.1))

        with tf.GradientTape() as tape:
            total = tf.reduce_sum(constraint("gran").transform(critic)(tf.constant(FAKE, tf.float32)))
        assert float(total) == pytest.approx(by_numpy(WEIGHTS), rel=1e-5)
        check_gradients(by_numpy, WEIGHTS, tape.gradient(total, variables))
