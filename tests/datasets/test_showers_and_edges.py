"""Showers with their energies, and photographs with their edges."""

import numpy as np
import pytest
import tensorflow as tf
from making import dataset as made
from scipy import stats

COUNT = 20_000


def test_showers_have_the_marginals_of_their_description():
    showers = made("showers", layers=4, low=0.8, high=2.0, resolution=0.2)
    numbers = tf.range(COUNT, dtype=tf.int64)
    energy, deposits = (np.float64(x(numbers, 5)) for x in (showers.conditions, showers.examples))
    assert stats.kstest(energy[:, 0], stats.uniform(0.8, 1.2).cdf).pvalue > 1e-3
    depth = np.array([0.5, 1.5, 2.5, 3.5])
    shares = depth**2 * np.exp(-depth) / (depth**2 * np.exp(-depth)).sum()
    for i, share in enumerate(shares):
        standard = (deposits[:, i] - share * energy[:, 0]) / (0.2 * np.sqrt(share * energy[:, 0]))
        assert stats.kstest(standard, "norm").pvalue > 1e-3, i
    total = (showers.condition_of(deposits) - energy) / (0.2 * np.sqrt(energy))
    assert stats.kstest(total[:, 0], "norm").pvalue > 1e-3
    assert showers.deviation(1.44) == pytest.approx(0.2 * 1.2)


def test_edges_are_where_the_sobel_gradient_is_long():
    edges = made("edges", side=9, threshold=0.5)
    numbers = tf.constant([3, 77, 4000], tf.int64)
    crops, found = edges.examples(numbers, 0).numpy(), edges.sources(numbers, 0).numpy()
    np.testing.assert_array_equal(crops, made("photo_patches", side=9).examples(numbers, 0))
    grey = np.pad(crops.mean(axis=-1, dtype=np.float64), [(0, 0), (1, 1), (1, 1)], mode="reflect")
    weights = np.outer([1, 2, 1], [-1, 0, 1])
    across, down = (
        sum(w[i, j] * grey[:, i : i + 9, j : j + 9] for i in range(3) for j in range(3)) for w in (weights, weights.T)
    )
    lengths = np.hypot(across, down)
    clear = np.abs(lengths - 0.5) > 1e-4
    assert 0.05 < (found == 1).mean() < 0.95
    np.testing.assert_array_equal(found[..., 0][clear], np.where(lengths > 0.5, 1, -1)[clear])
