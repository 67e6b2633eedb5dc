"""The constraints on gradients: values by hand, gradients by finite differences in numpy.

All are finite and float32, at flat critics and in half precision, too: tests/conformance.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
from prepared import Alone, batch, constraint, linear

import ganlab
from ganlab.functional import example_norm
from ganlab.layers import Dropout, GaussianNoise, noisy_layers


def penalty(made, critic, data, replica):
    """Takes the penalty as the core does in one update, without training."""
    state = made.advance({}, made.initial_state({}), data, replica)
    return made.penalty(critic, data, state, replica)


def bowl(x):
    """|x|^2 / 2, whose gradient at x is x."""
    return tf.reduce_sum(x * x, axis=1) / 2


class TestValues:
    """Each of the data's two examples goes from fake (0, 4) to real (8, 0); a quarter of the way is (2, 3)."""

    data = staticmethod(lambda: batch(np.tile([8.0, 0.0], (2, 1)), np.tile([0.0, 4.0], (2, 1))))

    @pytest.mark.parametrize(
        ("name", "arguments", "expected"),
        [
            ("gradient_penalty", {}, 10 * (np.sqrt(13) - 1) ** 2),
            ("gradient_penalty", {"weight": 2.0, "target": 5.0}, 2 * (np.sqrt(13) - 5) ** 2),
            ("lipschitz_penalty", {}, 10 * (np.sqrt(13) - 1) ** 2),
            ("lipschitz_penalty", {"target": 4.0}, 0.0),
            ("r1", {}, 10 / 2 * 64),
            ("r1", {"gamma": 0.5}, 0.5 / 2 * 64),
            ("r2", {}, 10 / 2 * 16),
            ("zero_centered_penalty", {}, 10 * 13),
            ("max_gradient_penalty", {"weight": 3.0}, 3 * 13),
            ("wgan_div", {}, 2 * 13**3),
            ("wgan_div", {"k": 1.0, "p": 3.0}, 13**1.5),
            # Noise of (1, 1) times half the deviation of 8, 0, 8, 0, which is 4: the slope is taken at (10, 2).
            ("dragan", {}, 10 * (np.sqrt(104) - 1) ** 2),
            ("dragan", {"scale": 0.0, "weight": 2.0, "target": 3.0}, 2 * (8 - 3) ** 2),
            # Uniform numbers of 1/4, along the way of one of 1/4, times half of the deviation 4: at (8.125, 0.125).
            ("dragan", {"noise": "uniform"}, 10 * (np.hypot(8.125, 0.125) - 1) ** 2),
            # The gradient (2, 3) has norms 5, sqrt(13) and 3 of orders 1, 2 and inf; the data's norm is 8 in each.
            ("banach_penalty", {"ord": np.inf}, 8 * 8 * (5 / 8 - 1) ** 2),
            ("banach_penalty", {"ord": 2.0}, 8 * 8 * (np.sqrt(13) / 8 - 1) ** 2),
            ("banach_penalty", {"ord": 1.0}, 8 * 8 * (3 / 8 - 1) ** 2),
            (
                "banach_penalty",
                {"ord": 3.0, "weight": 5.0, "target": 2.0},
                5 * 2 * ((8**0.5 + 27**0.5) ** (2 / 3) / 2 - 1) ** 2,
            ),
            ("banach_penalty", {"ord": 2.0, "weight": 10.0, "target": 1.0}, 10 * (np.sqrt(13) - 1) ** 2),
        ],
    )
    def test_by_hand(self, name, arguments, expected):
        value = penalty(constraint(name, **arguments), bowl, self.data(), Alone(normal=1.0))
        np.testing.assert_allclose(value, np.full(2, expected), rtol=1e-5)

    def test_a_banach_penalty_takes_its_scales_from_the_data(self):
        # Real examples (3, 4) and (0, 12): order 1 gives 7 and 12, order inf 4 and 12, their means 9.5 and 8.
        data = batch([[3.0, 4.0], [0.0, 12.0]], np.zeros((2, 2)))
        made = constraint("banach_penalty", ord=1.0)
        state = made.advance({}, made.initial_state({}), data, Alone())
        assert {name: float(value) for name, value in state.items()} == pytest.approx({"weight": 9.5, "target": 8.0})
        given = constraint("banach_penalty", ord=1.0, weight=0.0, target=3.0)
        state = given.advance({}, given.initial_state({}), data, Alone())
        assert {name: float(value) for name, value in state.items()} == {"weight": 0.0, "target": 3.0}

    @pytest.mark.parametrize(("slope", "expected"), [(0.5, 0.0), (1.0, 0.0), (1.5, 2.5), (3.0, 40.0)])
    def test_the_one_sided_penalty_allows_flat_critics(self, slope, expected):
        replica = Alone()
        value = penalty(constraint("lipschitz_penalty"), linear(slope, 0.0), self.data(), replica)
        np.testing.assert_allclose(value, np.full(2, expected), rtol=1e-5)
        np.testing.assert_array_equal(replica.logged["exceeding"][0], np.full(2, float(slope > 1)))

    def test_a_maximum_is_that_of_the_steepest_point(self):
        # Slopes 1, 2 and 3 at a quarter, half and three quarters of (4, 0); 9 for every example averages to 9.
        replica = Alone(uniform=[0.25, 0.5, 0.75])
        data = batch(np.tile([4.0, 0.0], (3, 1)), np.zeros((3, 2)))
        value = penalty(constraint("max_gradient_penalty"), bowl, data, replica)
        np.testing.assert_allclose(value, np.full(3, 9.0), rtol=1e-6)
        np.testing.assert_allclose(replica.logged["slope"][0], [1.0, 2.0, 3.0], rtol=1e-6)
        assert float(replica.logged["steepest"][0]) == pytest.approx(3.0)
        assert replica.logged["steepest"][1] == "max"

    def test_consistency_compares_two_passes(self):
        # Scores (3, 1, 1.5) and then (1, 1, 1): squared differences 4, 0 and 0.25, less 0.5, twice.
        passes = iter([[3.0, 1.0, 1.5], [1.0, 1.0, 1.0]])
        data, replica = batch(np.ones((3, 2)), np.zeros((3, 2))), Alone()
        value = penalty(constraint("consistency", margin=0.5), lambda x: tf.constant(next(passes)), data, replica)
        np.testing.assert_allclose(value, [7.0, 0.0, 0.0], rtol=1e-6)
        np.testing.assert_allclose(replica.logged["difference"][0], [2.0, 0.0, 0.5], rtol=1e-6)


class TestGradientNormalization:
    def normalized(self, critic, x):
        return np.asarray(constraint("gradient_normalization").transform(critic)(tf.constant(x, tf.float32)))

    def test_by_hand(self):
        # (3, 4)x has slope 5: at (1, 1) its 7 becomes 7 / 12, at (-1, 0) its -3 becomes -3 / 8.
        np.testing.assert_allclose(self.normalized(linear(3.0, 4.0), [[1, 1], [-1, 0]]), [7 / 12, -3 / 8], rtol=1e-6)

    def test_the_generators_gradient(self):
        # (|x|^2 / 2) / (|x| + |x|^2 / 2) = r / (2 + r) with r = |x|: its gradient is 2 / (2 + r)^2 outward.
        x = tf.constant([[3.0, 4.0]])
        with tf.GradientTape() as tape:
            tape.watch(x)
            score = constraint("gradient_normalization").transform(bowl)(x)
        assert float(score[0]) == pytest.approx(5 / 7)
        np.testing.assert_allclose(tape.gradient(score, x), [[3 / 5 * 2 / 49, 4 / 5 * 2 / 49]], rtol=1e-5)

    def test_a_linear_critics_slope_is_at_most_one(self):
        # (n / (n + |f|))^2 with n = 2 and f = 2x + 6 at x = 1, and at x = -3, where f is zero.
        x = tf.constant([[1.0], [-3.0]])
        with tf.GradientTape() as tape:
            tape.watch(x)
            score = constraint("gradient_normalization").transform(lambda x: 2 * x[:, 0] + 6)(x)
        np.testing.assert_allclose(tape.gradient(score, x), [[0.2**2], [1.0]], rtol=1e-5)

    @pytest.mark.parametrize(("score", "expected"), [(0.0, 0.0), (2.0, 1.0), (-3.0, -1.0)])
    def test_flat_critics(self, score, expected):
        np.testing.assert_allclose(self.normalized(lambda x: 0 * x[:, 0] + score, [[1.0]]), [expected], atol=1e-5)


def norm(x, order=2):
    return np.linalg.norm(x, order, axis=1)


class TestNorms:
    @pytest.mark.parametrize("order", [1.0, 1.1, 1.5, 2.0, 3.0, 10.0, 100.0, np.inf])
    def test_against_numpy(self, order):
        x, sizes = np.random.default_rng(0).normal(size=(5, 4, 3)), np.array([1e-8, 1e-3, 1.0, 1e3, 1e8])
        rows = slice(None) if order != 2 else slice(1, None)  # Euclidean norms read 1e-6 at zero
        found = example_norm(tf.constant(x * sizes[:, None, None], tf.float32), order)
        np.testing.assert_allclose(found[rows], (sizes * norm(x.reshape(5, 12), order))[rows], rtol=1e-5)
        (by_rule,), (by_differences,) = tf.test.compute_gradient(lambda x: example_norm(x, order), [np.float32(x[0])])
        np.testing.assert_allclose(by_rule, by_differences, atol=1e-3)

    @pytest.mark.parametrize("order", [1.0, 1.1, 1.5, 2.0, 3.0, 10.0, 100.0, np.inf])
    @pytest.mark.parametrize("size", [0.0, 1e-20, 1e-30])
    def test_finite_gradients_near_zero(self, order, size):
        x = tf.constant([[size, 0.0, -size]])
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = example_norm(x, order)
        gradient = tape.gradient(value, x)
        assert 0 <= float(value[0]) < 1e-5
        assert np.isfinite(gradient).all()
        assert size > 0 or not np.any(gradient)


class TestNoise:
    def critic(self, *layers):
        return keras.Sequential([keras.Input((2,)), *layers, keras.layers.Dense(1)])

    @pytest.mark.parametrize("made", [Dropout(0.5), GaussianNoise(0.1)], ids=["dropout", "noise"])
    def test_a_noisy_critic_is_accepted_at_any_depth(self, made):
        class Block(keras.layers.Layer):
            def __init__(self, inner):
                super().__init__()
                self.inner = inner

            def call(self, x, training=None):
                return self.inner(x, training=training)

        for critic in (self.critic(made), self.critic(Block(made)), self.critic(keras.Sequential([made]))):
            assert noisy_layers(critic) == [made]
            constraint("consistency").prepare(critic)

    @pytest.mark.parametrize("layers", [[], [Dropout(0.0)], [GaussianNoise(0.0)]], ids=["none", "rate 0", "stddev 0"])
    def test_a_critic_without_noise_is_refused(self, layers):
        with pytest.raises(ganlab.IncompatibleError, match=r"no noise\. Set architectures\.mlp\.dropout"):
            constraint("consistency").prepare(self.critic(*layers))

    @pytest.mark.parametrize(("name", "shape"), [("mlp", (2,)), ("dcgan", (16, 16, 1))])
    def test_the_architectures_dropout_is_the_noise_it_asks_for(self, name, shape):
        arguments = {"width": 4} if name == "mlp" else {"channels": 2}
        with pytest.raises(ganlab.IncompatibleError):
            constraint("consistency").prepare(ganlab.component("architectures", name)(**arguments).critic(shape))
        critic = ganlab.component("architectures", name)(dropout=0.2, **arguments).critic(shape)
        constraint("consistency").prepare(critic)


@pytest.mark.parametrize(
    ("name", "metrics", "says"),
    [
        ("lipschitz_penalty", {"slope": 2.5}, "2.5 where 1 is allowed"),
        ("lipschitz_penalty", {"slope": 0.1}, None),
        ("dragan", {"slope": 2.5}, "steep: the penalty does not hold the critic. Try a larger constraints.dragan."),
        # A penalty from both sides lifts what is too low, too.
        ("dragan", {"slope": 0.3}, "flat: the critic gives little signal. Try a larger constraints.dragan.weight"),
        ("dragan", {"slope": 1.1}, None),
        ("banach_penalty", {"slope": 60.0, "target": 27.0}, "60 where its target is 27, steep"),
        ("banach_penalty", {"slope": 30.0, "target": 27.0}, None),
        ("finite_difference_penalty", {"slope": 2.5}, "steep: "),
        ("finite_difference_penalty", {"slope": 0.3}, "flat: "),
        ("finite_difference_penalty", {"slope": 1.1}, None),
    ],
)
def test_diagnoses(name, metrics, says):
    warning = constraint(name).diagnose(metrics)
    assert warning is None if says is None else says in warning
