"""Uniform and truncated latent numbers: their distribution against scipy's, and the networks behind them."""

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

import ganlab


class Bare(ganlab.Architecture):
    """A generator that shows its latent numbers."""

    latent_dim = 2

    def generator(self, sample_shape):
        import keras

        latent = keras.Input((2,), name="latent")
        return keras.Model(latent, keras.layers.Identity()(latent))


def latents(**arguments):
    return ganlab.component("architectures", "latents")(**{"architecture": Bare()} | arguments)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, stats.uniform(-1, 2)),
        ({"distribution": "truncated"}, stats.truncnorm(-2, 2)),
        ({"distribution": "truncated", "bound": 0.5}, stats.truncnorm(-0.5, 0.5)),
    ],
)
def test_the_numbers_are_of_the_distribution(arguments, expected):
    normal = tf.random.stateless_normal([20_000, 2], seed=[1, 2])
    found = np.asarray(latents(**arguments).generator((2,))(normal), np.float64)
    assert stats.kstest(found.ravel(), expected.cdf).statistic < 1.95 / np.sqrt(40_000)  # p = 0.001
    # Number by number it is the quantile of the normal number.
    np.testing.assert_allclose(found, expected.ppf(stats.norm.cdf(np.asarray(normal, np.float64))), atol=2e-5)


def test_far_numbers_stay_finite():
    far = tf.constant([[12.0, -12.0]])
    for arguments in ({}, {"distribution": "truncated"}):
        found = np.asarray(latents(**arguments).generator((2,))(far))
        assert np.all(np.abs(found) <= 2.0 + 1e-6)


def test_labels_pass_through():
    inner = ganlab.component("architectures", "mlp")(width=8, latent_dim=3, labels="projection")
    made = ganlab.component("architectures", "latents")(architecture=inner)
    assert made.conditional
    assert made.latent_dim == 3
    generator = made.generator((2,), classes=4)
    assert [tuple(x.shape) for x in generator.inputs] == [tuple(x.shape) for x in inner.generator((2,), 4).inputs]
    z, labels = tf.random.stateless_normal([5, 3], seed=[1, 2]), tf.one_hot([0, 1, 2, 3, 0], 4)
    assert generator([z, labels]).shape == (5, 2)
