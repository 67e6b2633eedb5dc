"""architectures.growing: what each resolution's share leaves of images and of scores."""

import numpy as np
import pytest

import ganlab


def made(**given):
    return ganlab.component("architectures", "growing")(channels=4, doublings=2, **given)


def halved(x):
    return x.reshape(len(x), x.shape[1] // 2, 2, x.shape[2] // 2, 2, -1).mean((2, 4))


def doubled(x):
    return x.repeat(2, axis=1).repeat(2, axis=2)


def test_images_are_those_of_the_lower_resolution_until_the_next_is_faded_in():
    generator = made().generator((8, 8, 1))
    z = np.random.default_rng(0).normal(size=(3, 32)).astype(np.float32)
    images = {g: np.arctanh(np.float64(generator([z, np.full(3, g, np.float32)]))) for g in (0.0, 0.25, 1.0, 2.0)}
    smallest = halved(halved(images[0.0]))
    np.testing.assert_allclose(images[0.0], doubled(doubled(smallest)), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(images[1.0], doubled(halved(images[1.0])), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(images[0.25], 0.75 * images[0.0] + 0.25 * images[1.0], rtol=1e-5, atol=1e-5)
    assert np.abs(images[2.0] - doubled(halved(images[2.0]))).max() > 1e-3


def test_a_critic_sees_no_details_before_their_resolution_is_faded_in():
    critic = made().critic((8, 8, 1))
    x = np.random.default_rng(0).normal(size=(3, 8, 8, 1)).astype(np.float32)
    score = {
        g: [np.array(critic([y, np.full(3, g, np.float32)])) for y in (x, doubled(halved(x)))] for g in (0.0, 1.0, 2.0)
    }
    for g in (0.0, 1.0):
        np.testing.assert_allclose(*score[g], rtol=1e-5, atol=1e-5)
    assert np.abs(np.subtract(*score[2.0])).max() > 1e-3
    assert np.abs(score[0.0][0] - score[1.0][0]).max() > 1e-3


def test_images_that_cannot_be_halved_are_refused():
    with pytest.raises(ganlab.IncompatibleError, match="images whose sides 4 divides"):
        made().critic((8, 6, 1))
