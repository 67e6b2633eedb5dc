import numpy as np
import pytest
from ganlab_builtin.datasets import SwissRoll
from scipy.stats import ks_2samp
from sklearn.datasets import make_swiss_roll

COUNT = 20_000


def test_the_roll_is_distributed_as_scikit_learns(through_pipeline):
    roll = SwissRoll()
    assert (roll.size, roll.sample_shape) == (None, (2,))
    samples = through_pipeline(roll, range(COUNT), batch=COUNT, seed=1)
    reference = make_swiss_roll(COUNT, noise=0.25, random_state=2)[0][:, [0, 2]] / 7.5
    # Kolmogorov and Smirnov along several directions and outwards; the noise's scale is checked below.
    for project in (lambda x: x[:, 0], lambda x: x[:, 1], lambda x: x.sum(axis=1), lambda x: np.hypot(*x.T)):
        assert ks_2samp(project(samples), project(reference)).pvalue > 0.01
    np.testing.assert_allclose(samples.mean(axis=0), reference.mean(axis=0), atol=0.05)
    np.testing.assert_allclose(np.cov(samples.T), np.cov(reference.T), atol=0.03)


def test_without_noise_samples_lie_on_the_spiral(through_pipeline):
    scaled = 7.5 * through_pipeline(SwissRoll(noise=1e-6), range(5000), batch=5000)
    # On the spiral (t cos t, t sin t) the distance from the middle is t itself, from 1.5 pi to 4.5 pi.
    t = np.hypot(*scaled.T)
    np.testing.assert_allclose(scaled, np.stack([t * np.cos(t), t * np.sin(t)], axis=1), atol=2e-4)
    assert 1.5 * np.pi - 1e-4 < t.min() < t.max() < 4.5 * np.pi + 1e-4
    assert t.mean() == pytest.approx(3 * np.pi, abs=5 * 3 * np.pi / np.sqrt(12 * 5000))


def test_noise_is_round_and_of_its_scale(through_pipeline):
    noisy = through_pipeline(SwissRoll(noise=0.25), range(COUNT), batch=COUNT)
    noise = 7.5 * (noisy - through_pipeline(SwissRoll(noise=1e-6), range(COUNT), batch=COUNT))
    np.testing.assert_allclose(noise.std(axis=0), 0.25, rtol=5 / np.sqrt(2 * COUNT))
    np.testing.assert_allclose(noise.mean(axis=0), 0, atol=5 * 0.25 / np.sqrt(COUNT))
