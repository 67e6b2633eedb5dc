"""Samples drawn after training are the same that training drew."""

import numpy as np
import pytest
import tensorflow as tf

import ganlab as lab
from ganlab.errors import ConfigError, RunError
from ganlab.exporting import draw, interpolate
from ganlab.training.graph import noise


def test_a_sample_is_the_same_however_many_are_drawn(points):
    few, many = draw(lab.Run(points), 5), draw(lab.Run(points), 1203)
    np.testing.assert_array_equal(few.latents, many.latents[:5])
    np.testing.assert_allclose(few.samples, many.samples[:5], rtol=1e-6, atol=1e-6)
    assert (few.latents.shape, few.latents.dtype, few.step) == ((5, 3), np.float32, 4)
    assert few.seed == 3  # the run's own


def test_a_graph_that_learns_the_number_and_the_seed_late_draws_the_same_latents():
    drawn = tf.function(lambda n, seed: noise.latents(n, 3, seed))
    for n, seed in ((1, 0), (4, 7), (21, 2**31 - 1)):
        expected = noise.whole("normal", (n, 3), seed=seed, stream=noise.LATENT)
        np.testing.assert_array_equal(drawn(tf.constant(n), tf.constant(seed, tf.int64)), expected)


def test_truncation_changes_only_entries_beyond_it(points):
    run = lab.Run(points)
    free, cut = draw(run, 200), draw(run, 200, truncation=0.5)
    within = np.abs(free.latents) <= 0.5
    assert 0.3 < within.mean() < 0.46  # of a normal distribution 38%
    np.testing.assert_array_equal(cut.latents[within], free.latents[within])
    assert np.abs(cut.latents).max() <= 0.5
    assert len(np.unique(cut.latents)) == cut.latents.size
    np.testing.assert_array_equal(draw(run, 7, truncation=0.5).latents, cut.latents[:7])
    np.testing.assert_array_equal(draw(run, 200, truncation=100.0).samples, free.samples)
    with pytest.raises(ConfigError, match=r"truncation = 0\.001 must be at least 0\.01"):
        draw(run, 7, truncation=0.001)


def test_interpolation_goes_from_one_sample_to_the_next(points):
    run = lab.Run(points)
    ends, ways = draw(run, 6), interpolate(run, 3, 4)
    assert ways.samples.shape == (12, 2)
    np.testing.assert_array_equal(ways.latents[[0, 3, 4, 7, 8, 11]], ends.latents)
    np.testing.assert_allclose(ways.samples[[0, 3, 4, 7, 8, 11]], ends.samples, rtol=1e-6, atol=1e-6)
    assert np.abs(interpolate(run, 3, 2, truncation=0.5).latents).max() <= 0.5


def test_numbers_below_1_are_refused(points):
    with pytest.raises(ConfigError, match=r"^n = 0 must be a whole number of at least 1\.$"):
        draw(points, 0)
    with pytest.raises(ConfigError, match=r"^columns = 2\.5 must be a whole number of at least 1\.$"):
        interpolate(points, 1, 2.5)


def test_a_checkpoint_may_be_chosen(points):
    run = lab.Run(points)
    early, late = draw(run, 4, checkpoint=2), draw(run, 4)
    assert (early.step, late.step) == (2, 4)
    np.testing.assert_array_equal(early.latents, late.latents)
    assert not np.allclose(early.samples, late.samples, atol=1e-3)
    with pytest.raises(RunError, match="those that are kept are of 2, 4"):
        draw(run, 4, checkpoint=3)
