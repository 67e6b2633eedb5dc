"""The fixed generator: examples of the data plus noise of a known size, and nothing to train."""

import numpy as np
import pytest
import tensorflow as tf

import ganlab

pytestmark = pytest.mark.usefixtures("cpus")


def made(**arguments):
    dataset = ganlab.component("datasets", "gaussian_ring")()
    critic = ganlab.component("architectures", "mlp")(width=8, depth=2)
    return ganlab.component("architectures", "data_plus_noise")(**{"dataset": dataset, "critic": critic, **arguments})


def latent(n, width):
    return np.random.default_rng(0).normal(size=(n, width)).astype(np.float32)


def test_without_noise_it_gives_each_example_equally_often():
    architecture = made(std=0.0, examples=50)
    table = architecture.dataset.examples(tf.range(50, dtype=tf.int64), 0).numpy()
    drawn = architecture.generator((2,))(latent(20_000, 3)).numpy()
    which = np.linalg.norm(drawn[:, None] - table[None], axis=2)
    np.testing.assert_array_equal(which.min(axis=1), 0.0)
    # 400 of each of 50 are expected, with a standard deviation of 20.
    counts = np.bincount(which.argmin(axis=1), minlength=50)
    assert 300 < counts.min() <= counts.max() < 500


def test_the_noise_has_the_given_deviation():
    quiet, loud = made(std=0.0).generator((2,)), made(std=0.5).generator((2,))
    z = latent(20_000, 3)
    difference = (loud(z) - quiet(z)).numpy()
    np.testing.assert_allclose(difference, 0.5 * z[:, 1:], atol=1e-6)


def test_samples_of_another_shape_are_refused():
    with pytest.raises(ganlab.IncompatibleError, match=r"examples of shape \(2,\).*of shape \(8, 8, 1\)"):
        made().generator((8, 8, 1))
