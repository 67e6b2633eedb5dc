"""Constraints of contract 2 against closed forms, with linear networks; and their training on two replicas."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from making import constraint as made
from prepared import Alone

import ganlab

RANDOM = np.random.default_rng(1)
REAL, FAKE, LATENT = (RANDOM.normal(size=(5, n)).astype(np.float32) for n in (2, 2, 3))
SLOPE = np.array([0.6, -1.1], np.float32)
MATRIX = RANDOM.normal(size=(3, 2)).astype(np.float32)
DRAWN = RANDOM.normal(size=(5, 3)).astype(np.float32)


def critic(x):
    return tf.linalg.matvec(x, SLOPE) + 0.3


def generator(z):
    return z @ MATRIX


class Known(Alone):
    """A replica that is alone and whose normal numbers are known."""

    def normal(self, shape):
        return tf.constant(DRAWN[: shape[0], : shape[1]])


def batch(step=0):
    given = {"labels": None, "size": 5, "step": tf.constant(step, tf.int64), "latent": tf.constant(LATENT)}
    return ganlab.Batch(real=tf.constant(REAL), fake=tf.constant(FAKE), **given)


def of_generator(fake, latent):
    """The batch of a generator's update."""
    return ganlab.Batch(real=None, fake=fake, labels=None, size=5, step=0, latent=tf.constant(latent))


def scores(x):
    return x.astype(np.float64) @ SLOPE.astype(np.float64) + 0.3


def omega(name):
    if name == "fisher":
        return 0.5 * (scores(REAL) ** 2 + scores(FAKE) ** 2)
    return np.full(5, np.sum(SLOPE.astype(np.float64) ** 2))


@pytest.mark.parametrize("name", ["fisher", "sobolev"])
def test_mean_is_held_by_a_multiplier(name):
    constraint, replica = made(name, rho=0.2, multiplier=0.5), Known()
    state = constraint.initial_state({})
    values, rho = omega(name), 0.2
    state = constraint.advance({}, state, batch(), replica, critic)
    assert replica.logged["mean"][0] == pytest.approx(values.mean(), rel=1e-5)
    assert float(state["multiplier"]) == pytest.approx(0.5)
    penalty = constraint.penalty(critic, batch(), state, replica)
    np.testing.assert_allclose(penalty, 0.5 * (values - 1) + rho / 2 * (values.mean() - 1) ** 2, rtol=1e-5)
    # The paper's rule, lambda - rho (1 - Omega), with the mean of the update before.
    state = constraint.advance({}, state, batch(), replica, critic)
    assert float(state["multiplier"]) == pytest.approx(0.5 - rho * (1 - values.mean()), rel=1e-5)


@pytest.mark.parametrize("name", ["fisher", "sobolev"])
def test_gradient_is_that_of_the_square_of_the_mean(name):
    constraint, slope = made(name, rho=0.2, multiplier=0.5), tf.Variable(SLOPE)

    def moved(x):
        return tf.linalg.matvec(x, slope) + 0.3

    state = constraint.advance({}, constraint.initial_state({}), batch(), Known(), moved)
    with tf.GradientTape() as tape:
        total = tf.reduce_mean(constraint.penalty(moved, batch(), state, Known()))
    found = tape.gradient(total, slope).numpy()

    def whole(w):
        squares = 0.5 * sum(np.mean((x @ w + 0.3) ** 2) for x in (REAL, FAKE))
        mean = squares if name == "fisher" else np.sum(w**2)
        return 0.5 * (mean - 1) + 0.1 * (mean - 1) ** 2

    w, step = SLOPE.astype(np.float64), 1e-6
    expected = [(whole(w + step * e) - whole(w - step * e)) / (2 * step) for e in np.eye(2)]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_lecam_draws_scores_to_the_other_averages():
    constraint, replica = made("lecam", weight=2.0, decay=0.9), Known()
    state = constraint.advance({}, constraint.initial_state({}), batch(0), replica, critic)
    assert float(state["real"]) == pytest.approx(scores(REAL).mean(), rel=1e-5)
    state = constraint.advance({}, {"real": tf.constant(1.0), "fake": tf.constant(-1.0)}, batch(1), replica, critic)
    real, fake = 0.9 + 0.1 * scores(REAL).mean(), -0.9 + 0.1 * scores(FAKE).mean()
    assert replica.logged["real_average"][0] == pytest.approx(real, rel=1e-5)
    expected = 2.0 * ((scores(REAL) - fake) ** 2 + (scores(FAKE) - real) ** 2)
    np.testing.assert_allclose(constraint.penalty(critic, batch(1), state, replica), expected, rtol=1e-5)
    late = made("lecam", start=5)
    assert not np.any(late.penalty(critic, batch(4), state, replica))
    assert np.all(late.penalty(critic, batch(5), state, replica))


def test_rectified_lecam_is_that_of_the_authors():
    averages = {"real": tf.constant(0.1), "fake": tf.constant(0.5)}
    above, below = np.maximum(scores(REAL) - 0.5, 0), np.maximum(0.1 - scores(FAKE), 0)
    assert 0 < np.count_nonzero(above) < 5
    assert 0 < np.count_nonzero(below) < 5
    found = made("lecam", weight=2.0, rectified=True).penalty(critic, batch(1), averages, Known())
    np.testing.assert_allclose(found, 2.0 * (above**2 + below**2), rtol=1e-5)


@pytest.mark.parametrize(("name", "held"), [("score_drift", [REAL]), ("closed_loop_control", [REAL, FAKE])])
def test_squared_scores_of_real_examples_or_of_both(name, held):
    found = made(name, weight=0.5).penalty(critic, batch(), {}, Known())
    np.testing.assert_allclose(found, 0.5 * sum(scores(x) ** 2 for x in held), rtol=1e-5)


class Doubled(ganlab.Augmentation):
    def apply(self, x, state, replica):
        return 2.0 * x


def test_augmentation_consistency_compares_scores():
    constraint = made("augmentation_consistency", augmentation=Doubled(), weight=3.0, fake_weight=2.0)
    expected = 3.0 * (scores(REAL) - 0.3) ** 2 + 2.0 * (scores(FAKE) - 0.3) ** 2
    np.testing.assert_allclose(constraint.penalty(critic, batch(), {}, Known()), expected, rtol=1e-5)


def test_latent_consistency_on_both_networks():
    constraint, replica = made("latent_consistency", weight=3.0, generator_weight=2.0, noise=0.1), Known()
    step = 0.1 * DRAWN.astype(np.float64) @ MATRIX
    found = constraint.penalty(critic, batch(), {}, replica, generator)
    np.testing.assert_allclose(found, 3.0 * (step @ SLOPE) ** 2, rtol=1e-4)
    given = of_generator(generator(LATENT), LATENT)
    found = constraint.generator_penalty(generator, critic, given, {}, replica)
    np.testing.assert_allclose(found, -2.0 * np.sum(step**2, axis=1), rtol=1e-4)


def test_mode_seeking_is_the_inverse_ratio_of_distances():
    given = of_generator(generator(LATENT), LATENT)
    found = made("mode_seeking", weight=2.0).generator_penalty(generator, critic, given, {}, Known())
    apart = LATENT.astype(np.float64) - DRAWN
    ratio = np.abs(apart @ MATRIX).mean(1) / np.abs(apart).mean(1)
    np.testing.assert_allclose(found, 2.0 / (ratio + 1e-5), rtol=1e-5)


def test_transport_cost_is_the_squared_distance_from_the_latent_vector():
    constraint = made("transport_cost", weight=3.0)
    x = keras.Input((4,))
    constraint.prepare(keras.Model(x, keras.layers.Reshape((2, 2))(x)))
    fake, latent = np.random.default_rng(0).normal(size=(2, 5, 4)).astype(np.float32)
    given = of_generator(tf.reshape(fake, [5, 2, 2]), latent)
    found = constraint.generator_penalty(None, None, given, {}, Known())
    np.testing.assert_allclose(found, 3.0 * np.mean((fake - latent) ** 2, axis=1), rtol=1e-5)
    with pytest.raises(ganlab.IncompatibleError, match=r"needs latent vectors of 3 numbers.*takes 4\. Set the arch"):
        constraint.prepare(keras.Model(x, keras.layers.Dense(3)(x)))


def test_path_length_is_that_of_the_jacobian():
    constraint, replica = made("path_length", weight=3.0, decay=0.9), Known()
    lengths = np.linalg.norm(DRAWN[:, :2].astype(np.float64) @ MATRIX.T, axis=1)
    state = constraint.advance({}, {"average": tf.constant(2.0)}, batch(), replica, generator)
    average = 0.9 * 2.0 + 0.1 * lengths.mean()
    assert float(state["average"]) == pytest.approx(average, rel=1e-5)
    found = constraint.generator_penalty(generator, critic, batch(), state, replica)
    np.testing.assert_allclose(found, 3.0 * (lengths - average) ** 2, rtol=1e-4)
    # The penalty is computed in every fourth update, and the average rests in the others.
    for step in (1, 2, 3, 5):
        rests = constraint.advance({}, state, batch(step), replica, generator)["average"]
        assert float(rests) == float(state["average"])
    again = constraint.advance({}, state, batch(4), replica, generator)
    assert float(again["average"]) == pytest.approx(0.9 * average + 0.1 * lengths.mean(), rel=1e-5)


def test_latent_step_goes_up_the_scores():
    moved = made("latent_step", alpha=0.9, beta=5.0).transform(generator, critic)
    gradient = MATRIX.astype(np.float64) @ SLOPE
    expected = (LATENT + 0.9 * gradient / (5.0 + gradient @ gradient)) @ MATRIX
    np.testing.assert_allclose(moved(tf.constant(LATENT)), expected, rtol=1e-5)
