"""Losses of pairs, of the global batch and of classes, against numpy in float64."""

import numpy as np
import pytest
import tensorflow as tf

import ganlab
from ganlab.errors import ConfigError

RANDOM = np.random.default_rng(0)
REAL, FAKE = (RANDOM.normal(size=6).astype(np.float32) for _ in range(2))
LABELS = np.array([0, 2, 1, 2, 0, 1])
REAL_LOGITS, FAKE_LOGITS = (RANDOM.normal(size=(6, 3)).astype(np.float32) for _ in range(2))


class Alone:
    """One replica."""

    def __init__(self):
        self.logged = {}

    def mean(self, x):
        return x

    def log(self, name, values, reduce="mean"):
        self.logged[name] = float(tf.reduce_mean(values))


def softplus(x):
    return np.log1p(np.exp(np.asarray(x, np.float64)))


def batch(labels=LABELS):
    return ganlab.Batch(
        real=None,
        fake=None,
        labels=tf.constant(labels, tf.int64),
        size=6,
        step=tf.constant(0, tf.int64),
        real_outputs={"logits": tf.constant(REAL_LOGITS)},
        fake_outputs={"logits": tf.constant(FAKE_LOGITS)},
    )


def loss(name, **arguments):
    return ganlab.component("losses", name)(**arguments)


def test_relativistic_is_the_cross_entropy_of_pairs():
    made = loss("relativistic")
    assert made.pairs
    np.testing.assert_allclose(made.critic(REAL, FAKE), softplus(FAKE - REAL), rtol=1e-6)
    np.testing.assert_allclose(made.generator(FAKE, REAL), softplus(REAL - FAKE), rtol=1e-6)


def test_relativistic_average_compares_with_means():
    made = loss("relativistic_average")
    real, fake = REAL.astype(np.float64), FAKE.astype(np.float64)
    expected = softplus(fake.mean() - real) + softplus(fake - real.mean())
    np.testing.assert_allclose(made.critic(tf.constant(REAL), tf.constant(FAKE), Alone()), expected, rtol=1e-6)
    expected = softplus(real.mean() - fake) + softplus(real - fake.mean())
    np.testing.assert_allclose(made.generator(tf.constant(FAKE), tf.constant(REAL), Alone()), expected, rtol=1e-6)


def entropy(logits):
    logits = logits.astype(np.float64)
    return np.log(np.exp(logits).sum(1)) - logits[np.arange(6), LABELS]


@pytest.mark.parametrize("on_samples", [True, False])
def test_auxiliary_classifier_adds_cross_entropies(on_samples):
    made, replica = loss("auxiliary_classifier", weight=0.5, on_samples=on_samples), Alone()
    expected = softplus(-REAL) + softplus(FAKE) + 0.5 * entropy(REAL_LOGITS)
    expected += 0.5 * entropy(FAKE_LOGITS) * on_samples
    np.testing.assert_allclose(made.critic(REAL, FAKE, batch(), replica), expected, rtol=1e-6)
    np.testing.assert_allclose(made.generator(FAKE, batch()), softplus(-FAKE) + 0.5 * entropy(FAKE_LOGITS), rtol=1e-6)
    assert replica.logged["accuracy"] == pytest.approx((REAL_LOGITS.argmax(1) == LABELS).mean())


def test_auxiliary_classifier_takes_another_game_but_no_pairs():
    made = loss("auxiliary_classifier", game=loss("wasserstein"), weight=0.0)
    np.testing.assert_allclose(made.critic(REAL, FAKE, batch(), Alone()), FAKE - REAL, rtol=1e-6)
    with pytest.raises(ConfigError, match="compares pairs of examples"):
        loss("auxiliary_classifier", game=loss("relativistic"))


def margin(logits, scores, labels):
    whole = np.concatenate([logits, -scores[:, None]], axis=1).astype(np.float64)
    return [
        max(0, 1 - row[y] + max(v for k, v in enumerate(row) if k != y)) for row, y in zip(whole, labels, strict=True)
    ]


def test_multi_hinge_asks_for_a_margin_of_one():
    made = loss("multi_hinge")
    expected = np.add(margin(REAL_LOGITS, REAL, LABELS), margin(FAKE_LOGITS, FAKE, np.full(6, 3)))
    np.testing.assert_allclose(made.critic(tf.constant(REAL), tf.constant(FAKE), batch()), expected, rtol=1e-5)
    expected = margin(FAKE_LOGITS, FAKE, LABELS)
    np.testing.assert_allclose(made.generator(tf.constant(FAKE), batch()), expected, rtol=1e-5)
