"""Truncation and interpolation of latent vectors, against numbers worked out by hand and by scipy."""

import numpy as np
import pytest
from ganlab_export.latents import spherical, truncated
from scipy import stats


@pytest.mark.parametrize("limit", [0.1, 0.7, 2.0])
def test_the_distribution_is_a_normal_one_cut_off(limit):
    numbers = np.random.default_rng(0)
    drawn = truncated(numbers.standard_normal((20_000, 2)), lambda _: numbers.standard_normal((20_000, 2)), limit)
    expected = stats.truncnorm(-limit, limit)
    assert stats.kstest(drawn.ravel(), expected.cdf).pvalue > 0.01
    assert np.abs(drawn).max() <= limit


def test_vectors_of_other_lengths_by_hand():
    # An angle of 60 degrees: at t = 1/2 both ends weigh sin(30) / sin(60) = 1 / sqrt(3).
    start, end = np.array([[2.0, 0.0, 0.0]]), np.array([[0.5, np.sqrt(0.75), 0.0]])
    middle = spherical(start, end, 3)[0, 1]
    np.testing.assert_allclose(middle, (start + end)[0] / np.sqrt(3), rtol=1e-6)


def test_interpolation_keeps_the_norm_hits_both_ends_and_moves_by_equal_angles():
    numbers = np.random.default_rng(1)
    ends = numbers.standard_normal((2, 7, 50))
    starts, ends = (ends / np.linalg.norm(ends, axis=-1, keepdims=True) * 4).astype(np.float32)
    way = spherical(starts, ends, 5)
    assert way.shape == (7, 5, 50)
    assert way.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(way, axis=-1), 4, rtol=1e-6)
    np.testing.assert_array_equal(way[:, 0], starts)
    np.testing.assert_array_equal(way[:, -1], ends)
    cosines = (way[:, 1:] * way[:, :-1]).sum(axis=-1) / 16
    np.testing.assert_allclose(cosines, cosines[:, :1].repeat(4, axis=1), atol=1e-6)
    assert np.linalg.norm(starts[0] + ends[0]) / 2 < 3.5  # a straight line would leave the sphere


@pytest.mark.parametrize("end", [[3.0, 0.0], [-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]], ids=str)
def test_interpolation_is_straight_if_no_circle_is_defined(end):
    way = spherical(np.array([[1.0, 0.0]]), np.array([end]), 3)
    np.testing.assert_allclose(way[0], [[1, 0], [(1 + end[0]) / 2, 0], end], atol=1e-7)
