import math

import numpy as np
import pytest
import tensorflow as tf
from alone import Alone

import ganlab

REAL = [2.0, -1.0, 0.5]
FAKE = [-3.0, 0.5, 1.0]


def softplus(x):
    return math.log(1.0 + math.exp(x))


# Worked out by hand from the papers' equations.
VALUES = {
    "wasserstein": ([-5.0, 1.5, 0.5], [3.0, -0.5, -1.0]),
    "hinge": ([0.0, 2.0 + 1.5, 0.5 + 2.0], [3.0, -0.5, -1.0]),
    "non_saturating": (
        [softplus(-2.0) + softplus(-3.0), softplus(1.0) + softplus(0.5), softplus(-0.5) + softplus(1.0)],
        [softplus(3.0), softplus(-0.5), softplus(-1.0)],
    ),
    # Margins of 1 / 2: half of ten times the shortfalls 0 + 0, 1.5 + 1 and 0 + 1.5.
    "hkr": ([-5.0, 1.5 + 12.5, 0.5 + 7.5], [3.0, -0.5, -1.0]),
    "patient": ([-5.0, 1.5, 0.5], [3.0, -0.5, -1.0]),
    "kr": ([-5.0, 1.5, 0.5], [3.0, -0.5, -1.0]),
    "least_squares": ([(1.0 + 9.0) / 2, (4.0 + 0.25) / 2, (0.25 + 1.0) / 2], [16.0 / 2, 0.25 / 2, 0.0]),
}


@pytest.mark.parametrize("name", VALUES)
def test_losses_are_the_papers_equations_per_example(name):
    loss = ganlab.component("losses", name)()
    critic, generator = VALUES[name]
    for expected, found in (
        (critic, loss.critic(tf.constant(REAL), tf.constant(FAKE))),
        (generator, loss.generator(tf.constant(FAKE))),
    ):
        assert found.dtype == tf.float32
        assert found.shape == (3,)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_non_saturating_loss_neither_overflows_nor_saturates():
    loss = ganlab.component("losses", "non_saturating")()
    scores = tf.constant([-1000.0])
    with tf.GradientTape() as tape:
        tape.watch(scores)
        value = loss.generator(scores)
    assert value.numpy() == [1000.0]
    assert tape.gradient(value, scores).numpy() == [-1.0]


def test_least_squares_takes_the_targets_of_the_pearson_divergence():
    # b - c = 1 and b - a = 2: the paper's first choice, a = -1, b = 1, c = 0.
    loss = ganlab.component("losses", "least_squares")(a=-1.0, b=1.0, c=0.0)
    np.testing.assert_allclose(loss.critic(tf.constant([3.0]), tf.constant([1.0])), [(4.0 + 4.0) / 2])
    np.testing.assert_allclose(loss.generator(tf.constant([3.0])), [4.5])


def test_a_hinge_has_the_parameters_of_deel_lip():
    # A margin of 4 is 2 on either side: shortfalls 0.5 and 2.25, by hand.
    scores = tf.constant([1.5]), tf.constant([0.25])
    loss = ganlab.component("losses", "hkr")(alpha=2.0, min_margin=4.0)
    np.testing.assert_allclose(loss.critic(*scores), [0.25 - 1.5 + 2.0 * (0.5 + 2.25) / 2])
    free = ganlab.component("losses", "hkr")(alpha=0.0)
    np.testing.assert_allclose(free.critic(*scores), ganlab.component("losses", "kr")().critic(*scores))


def test_least_squares_refuses_equal_targets():
    with pytest.raises(ganlab.ConfigError, match=r"losses\.least_squares\.a = 1\.0 equals b: .* Use different targets"):
        ganlab.component("losses", "least_squares")(a=1.0)


def test_a_generator_waits_while_the_estimate_rises_and_moves_once_it_has_settled():
    loss = ganlab.component("losses", "patient")(tolerance=0.1)
    state, ready = loss.initial_state(), []
    for _ in range(60):
        state = loss.advance(state, tf.constant([1.0, 3.0]), tf.constant([0.0, 0.0]), Alone())
        ready.append(bool(loss.ready(state)))
    # The averages of a constant 2 are 2 (1 - 0.8**t) and 2 (1 - 0.95**t).
    t = np.arange(1, 61)
    np.testing.assert_allclose(state["long"], 2 * (1 - 0.95**60), rtol=1e-5)
    assert ready == list((1 - 0.8**t) <= 1.1 * (1 - 0.95**t))
    assert not ready[0]
    assert ready[-1]
