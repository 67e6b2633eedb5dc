"""Random numbers belong to examples: a replica's are rows of the whole draw, whatever the batch is split into."""

import numpy as np
import pytest
import tensorflow as tf
from networks_by_hand import splitmix64
from scipy import stats

from ganlab.functional import example_normal, example_uniform
from ganlab.training.graph.noise import LATENT, Draw, draw, whole

pytestmark = pytest.mark.usefixtures("cpus")


def rows(kind, shape, replica=0, *, seed=7, step=5, stream=2, number=1):
    spec = Draw(kind, shape, stream, number)
    first = replica * (shape[0] if shape else 1)
    return draw(spec, seed=seed, step=tf.constant(step, tf.int64), first=tf.constant(first))


@pytest.mark.parametrize("kind", ["uniform", "normal"])
@pytest.mark.parametrize("width", [(4,), (3,), (1,), (), (2, 3)], ids=str)
@pytest.mark.parametrize("replicas", [2, 4, 12])
def test_slices_are_rows_of_the_whole(kind, width, replicas):
    together = rows(kind, (12, *width)).numpy()

    slices = [rows(kind, (12 // replicas, *width), replica).numpy() for replica in range(replicas)]

    np.testing.assert_array_equal(np.concatenate(slices), together)


@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_a_graph_draws_what_eager_code_draws(kind):
    spec = Draw(kind, (3, 5), 2, 1)
    graph = tf.function(lambda step, first: draw(spec, seed=7, step=step, first=first))
    drawn = graph(tf.constant(5, tf.int64), tf.constant(6))
    np.testing.assert_array_equal(drawn, rows(kind, (3, 5), 2))


@pytest.mark.parametrize("change", [{"step": 6}, {"stream": 3}, {"number": 2}, {"seed": 8}, {"step": 5 + 2**32}])
def test_steps_streams_draws_and_seeds_have_numbers_of_their_own(change):
    one, other = rows("normal", (1000,)).numpy(), rows("normal", (1000,), **change).numpy()
    assert not np.isin(one, other).all()
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.15  # five standard errors


@pytest.mark.parametrize("stream", [0, 1])
def test_example_uniform_is_uniform(stream):
    values = example_uniform(tf.range(50_000, dtype=tf.int64), 2, seed=3, stream=stream).numpy()

    assert values.dtype == np.float32
    assert values.min() >= 0
    assert values.max() < 1
    assert stats.kstest(values.ravel(), "uniform").pvalue > 1 / 1500
    # Standard errors: 1 / sqrt(12 * 50,000) = 0.0013 of a mean, 1 / sqrt(50,000) = 0.0045 of a correlation.
    np.testing.assert_allclose(values.mean(axis=0), 0.5, atol=0.006)
    np.testing.assert_allclose(values.var(axis=0), 1 / 12, atol=0.002)
    assert abs(np.corrcoef(values.T)[0, 1]) < 0.02
    assert abs(np.corrcoef(values[:-1, 0], values[1:, 0])[0, 1]) < 0.02


def test_example_normal_is_normal():
    values = example_normal(tf.range(50_000, dtype=tf.int64), 3, seed=3).numpy()

    np.testing.assert_allclose(values.mean(axis=0), 0, atol=0.02)
    np.testing.assert_allclose(np.cov(values.T), np.eye(3), atol=0.03)
    assert stats.kstest(values.ravel(), "norm").pvalue > 1 / 1500


def test_streams_and_seeds_of_examples_are_unrelated():
    numbers = tf.range(10_000, dtype=tf.int64)
    drawn = [
        example_uniform(numbers, 1, seed=seed, stream=stream).numpy().ravel()
        for seed, stream in ((0, 0), (0, 1), (1, 0), (1, 1))
    ]
    assert np.abs(np.corrcoef(drawn) - np.eye(4)).max() < 0.05


def test_example_uniform_is_splitmix64():
    expected = [splitmix64(number + 1, seed=5, stream=3) >> 40 for number in (0, 7, 10**12)]
    found = example_uniform(tf.constant([0, 7, 10**12], tf.int64), 1, 5, 3).numpy()[:, 0]
    np.testing.assert_array_equal(found, np.float32(expected) * np.float32(2**-24))


@pytest.mark.parametrize("function", [example_uniform, example_normal])
def test_an_example_has_its_numbers_in_any_company(function):
    together = function(tf.range(100, dtype=tf.int64), 3, seed=2).numpy()
    some = tf.constant([99, 3, 3, 50], tf.int64)
    # Kernels round sines and cosines one way in bulk and another at the ends.
    np.testing.assert_allclose(function(some, 3, seed=2).numpy(), together[[99, 3, 3, 50]], rtol=1e-6, atol=1e-6)
    far = function(tf.constant([2**40], tf.int64), 3, seed=2).numpy()
    assert np.isfinite(far).all()
    assert not np.array_equal(far[0], together[0])


@pytest.mark.parametrize("kind", ["normal", "uniform"])
@pytest.mark.parametrize("width", [1, 2, 3, 5, 128])
def test_rows_from_a_number_on_are_those_of_the_whole_draw(kind, width):
    together = whole(kind, (40, width), seed=3, stream=LATENT).numpy()
    for start in (0, 1, 2, 3, 4, 7, 13):
        for count in (1, 4, 8, 11):
            part = whole(kind, (count, width), seed=3, stream=LATENT, start=start)
            np.testing.assert_array_equal(part, together[start : start + count])
