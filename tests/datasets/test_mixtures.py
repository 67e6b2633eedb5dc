import math

import numpy as np
import pytest
from ganlab_builtin.datasets import GaussianGrid, GaussianRing

COUNT = 40_000


def test_the_ring_is_the_papers():
    ring = GaussianRing()
    root = math.sqrt(2.0) / 1.414
    side = 2.0 / 1.414
    by_hand = [(side, 0), (root, root), (0, side), (-root, root), (-side, 0), (-root, -root), (0, -side), (root, -root)]
    np.testing.assert_allclose(ring.modes, by_hand, atol=1e-6)
    assert ring.modes.dtype == np.float32
    assert ring.std == pytest.approx(0.02 / 1.414)
    assert (ring.size, ring.sample_shape) == (None, (2,))


def test_the_grid_is_the_papers():
    grid = GaussianGrid()
    by_hand = [(x / 2.828, y / 2.828) for x in (-4, -2, 0, 2, 4) for y in (-4, -2, 0, 2, 4)]
    np.testing.assert_allclose(grid.modes, by_hand, atol=1e-6)
    assert grid.std == pytest.approx(0.05 / 2.828)


def test_a_grid_of_even_side_has_no_mode_at_zero():
    np.testing.assert_allclose(GaussianGrid(side=2, spacing=3.0, scale=1.0).modes[:, 0], [-1.5, -1.5, 1.5, 1.5])


@pytest.mark.parametrize("made", [GaussianRing(), GaussianGrid(), GaussianRing(modes=3, std=0.1, scale=1.0)])
def test_samples_have_the_fractions_and_moments_of_the_mixture(made, through_pipeline):
    samples = through_pipeline(made, range(COUNT), batch=COUNT, seed=5)
    distances = np.linalg.norm(samples[:, None] - made.modes[None], axis=-1)
    nearest = distances.argmin(axis=1)
    k = len(made.modes)
    # Five standard errors of a binomial fraction, of a standard deviation and of a mean.
    fractions = np.bincount(nearest, minlength=k) / COUNT
    np.testing.assert_allclose(fractions, 1 / k, atol=5 * math.sqrt((1 - 1 / k) / k / COUNT))
    deviations = samples - made.modes[nearest]
    np.testing.assert_allclose(deviations.std(axis=0), made.std, rtol=5 / math.sqrt(2 * COUNT))
    np.testing.assert_allclose(deviations.mean(axis=0), 0, atol=5 * made.std / math.sqrt(COUNT))
    correlation = np.corrcoef(deviations.T)[0, 1]
    assert abs(correlation) < 5 / math.sqrt(COUNT)
    # In the plane a Gaussian leaves exp(-9/2) beyond three standard deviations: 98.9% are within.
    within = (distances.min(axis=1) < 3 * made.std).mean()
    assert within == pytest.approx(1 - math.exp(-4.5), abs=5 * math.sqrt(0.0111 * 0.9889 / COUNT))


def test_seeds_and_numbers_give_other_samples(through_pipeline):
    ring = GaussianRing()
    first = through_pipeline(ring, range(100), batch=100, seed=0)
    assert len(np.unique(first, axis=0)) == 100
    assert not np.any(np.all(first == through_pipeline(ring, range(100), batch=100, seed=1), axis=1))
    assert not np.any(np.all(first == through_pipeline(ring, range(100, 200), batch=100, seed=0), axis=1))
