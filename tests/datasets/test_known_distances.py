"""Pairs whose Wasserstein-1 distance is known in closed form."""

import numpy as np
import pytest
from given import pair
from making import dataset as make

import ganlab
from ganlab.transport import exact_w1


def test_the_two_images_are_35_apart():
    dataset = make("two_images")
    image, ground = pair(dataset, 3)
    assert image.shape == ground.shape == (3, 64, 64, 1)
    assert np.count_nonzero(ground) == 0
    # 64 * sqrt(0.3) = 35.05: a square of 35 x 35 ones, whose norm is 35.
    assert np.count_nonzero(image[0] == 1.0) == image[0].sum() == 35 * 35
    assert image[0, 14:49, 14:49, 0].all()
    assert dataset.wasserstein == 35.0
    assert exact_w1(image, ground) == 35.0


def test_two_images_of_other_measures():
    dataset = make("two_images", side=10, fraction=0.25, dark=-1.0, bright=0.5)
    image, ground = pair(dataset, 2)
    assert np.unique(ground) == -1.0
    assert np.count_nonzero(image[0] == 0.5) == 25
    assert dataset.wasserstein == 5 * 1.5 == exact_w1(image, ground)


def test_translated_gaussians_are_their_shift_apart():
    dataset = make("translated_gaussians", dims=3, distance=2.5, std=0.5)
    moved, centred = pair(dataset, 400)
    np.testing.assert_allclose(moved - centred, np.full((400, 3), 2.5 / np.sqrt(3)), rtol=1e-5)
    assert dataset.wasserstein == 2.5
    assert exact_w1(moved, centred) == pytest.approx(2.5, rel=1e-5)
    # 400 draws: the standard error of a mean is 0.025, of a deviation 0.018.
    np.testing.assert_allclose(centred.mean(axis=0), 0.0, atol=0.1)
    np.testing.assert_allclose(centred.std(axis=0), 0.5, atol=0.07)


def test_without_a_difference_there_is_the_counterpart():
    for dataset in (make("two_images", bright=0.0), make("translated_gaussians", distance=0.0)):
        assert dataset.wasserstein == 0.0
        np.testing.assert_array_equal(*pair(dataset, 3))


def test_a_square_smaller_than_a_pixel_is_refused():
    with pytest.raises(ganlab.ConfigError, match=r"two_images\.fraction = 1e-05 .* one pixel"):
        make("two_images", fraction=1e-5)
