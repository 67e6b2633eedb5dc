"""The measures of reproductions, on functions with known figures."""

import math

import numpy as np
import pytest
from reproductions.mode_coverage import interval
from reproductions.wgan_gp_fig1_gradients import line_through
from reproductions.wgan_gp_fig1_surfaces import dip_between, neighbours

import ganlab


class Critic:
    """A critic that is a given function of the plane."""

    def __init__(self, function):
        self.scores = function


def dip(function, first, second, slope=1.0):
    return dip_between(Critic(function), np.array(first, float), np.array(second, float), slope)


def test_the_dip_of_a_plane_a_valley_and_a_ridge():
    first, second = [[-1.0, 0.0], [-1.0, 3.0]], [[1.0, 0.0], [1.0, 3.0]]
    assert dip(lambda x: 3 * x[:, 0] - x[:, 1], first, second) == pytest.approx(0.0, abs=1e-12)
    # The steepest valley of slope 2 between points 2 apart is 2 deep, all that its slope allows.
    assert dip(lambda x: 2 * np.abs(x[:, 0]), first, second, slope=2.0) == pytest.approx(1.0)
    assert dip(lambda x: -2 * np.abs(x[:, 0]), first, second, slope=2.0) == pytest.approx(-1.0)


def test_no_concave_function_dips_between_neighbours():
    for name in ("gaussian_ring", "gaussian_grid", "swiss_roll"):
        first, second = neighbours(ganlab.component("datasets", name)(), name)
        for order in (1, 2, np.inf):
            assert dip(lambda x, order=order: -np.linalg.norm(x, ord=order, axis=1), first, second) <= 1e-6


def test_neighbours_of_the_mixtures():
    ring, grid = (ganlab.component("datasets", f"gaussian_{name}")() for name in ("ring", "grid"))
    first, second = neighbours(ring, "gaussian_ring")
    assert len(first) == 8
    np.testing.assert_allclose(np.linalg.norm(first - second, axis=1), 2 * 2 / 1.414 * math.sin(math.pi / 8), rtol=1e-5)
    first, second = neighbours(grid, "gaussian_grid")
    assert len(first) == 2 * 5 * 4
    np.testing.assert_allclose(np.abs(first - second).sum(axis=1), 2 / 2.828, rtol=1e-5)


def test_points_that_face_each_other_in_the_swiss_roll_lie_on_it():
    data = ganlab.component("datasets", "swiss_roll")()
    examples = np.asarray(data.examples(np.arange(20_000), 0))
    first, second = neighbours(data, "swiss_roll")
    for points in (first, second):
        nearest = np.linalg.norm(points[:, None] - examples[None], axis=2).min(axis=1)
        assert nearest.max() < 0.05
    # Half way there is nothing: the sheet's deviation is 0.033.
    middle = np.linalg.norm(((first + second) / 2)[:, None] - examples[None], axis=2).min(axis=1)
    assert middle.min() > 0.25


def test_the_line_through_norms():
    slope, fit = line_through([1e-6, 1e-4, 1e-2, 1.0])
    assert (slope, fit) == (pytest.approx(2.0), pytest.approx(1.0))
    # Heights 0, 1, 0: the line is flat at 1/3 and explains nothing.
    slope, fit = line_through([1.0, 10.0, 1.0])
    assert (slope, fit) == (pytest.approx(0.0, abs=1e-12), pytest.approx(0.0, abs=1e-12))


def test_the_interval_of_a_mean():
    # Three values of standard deviation 1: t(2) is 4.3027 at 97.5%, over the square root of three.
    assert interval(np.array([7.0, 8.0, 6.0])) == pytest.approx(4.30265 / math.sqrt(3), rel=1e-5)
    assert interval(np.array([8.0, 8.0, 8.0])) == 0.0
    assert interval(np.array([8.0])) == math.inf
