"""Pictures, decoded by another library and checked pixel by pixel."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from ganlab.telemetry.plots import image_grid, picture, scatter


def decode(png):
    return np.asarray(Image.open(io.BytesIO(png)))


def test_grey_images_lie_in_rows_enlarged_with_gaps():
    samples = np.full((3, 8, 8, 1), -1.0, np.float32)
    samples[0, 0, 0] = 1.0  # the top left pixel of the first
    samples[1] = 0.0
    samples[2, 7, 7] = 5.0  # beyond white
    pixels = decode(image_grid(samples, columns=2))
    assert pixels.shape == (2 * 66 + 2, 2 * 66 + 2)
    assert (pixels[:2] == 128).all()
    assert (pixels[:, 66:68] == 128).all()
    assert (pixels[2:10, 2:10] == 255).all()
    assert (pixels[2:66, 10:66] == 0).all()
    assert (pixels[2:66, 68:132] == 128).all()
    assert (pixels[68 + 56 : 132, 2 + 56 : 66] == 255).all()
    assert (pixels[68:132, 2 : 2 + 56] == 0).all()
    assert (pixels[68:, 68:] == 128).all()  # where a fourth would be


def test_colours_are_red_green_blue_and_large_images_keep_their_size():
    samples = np.full((1, 100, 90, 3), -1.0)
    samples[..., 0], samples[..., 2] = 1.0, 0.5
    pixels = decode(image_grid(samples))
    assert pixels.shape == (104, 94, 3)
    assert (pixels[2:102, 2:92] == [255, 0, 191]).all()  # (0.5 + 1) * 127.5 = 191.25


def test_nan_is_mid_grey_and_the_grid_is_square_by_default():
    pixels = decode(image_grid(np.full((10, 16, 16, 1), np.nan)))
    assert pixels.shape == (3 * 66 + 2, 4 * 66 + 2)
    assert (pixels == 128).all()


@pytest.mark.parametrize("shape", [(8, 8, 1), (0, 8, 8, 1), (1, 8, 8, 2)])
def test_arrays_that_are_not_images_are_refused(shape):
    with pytest.raises(ValueError, match=r"must be \(n, h, w, 1 or 3\)"):
        image_grid(np.zeros(shape))


def near(pixels, colour):
    return (np.abs(pixels[..., :3].astype(int) - colour) < 60).all(axis=-1)


ORANGE, BLUE = (232, 135, 30), (31, 95, 168)


def test_points_lie_where_they_should_and_the_range_is_that_of_the_data():
    real = np.repeat([[-1.0, -1.0], [1.0, 1.0]], 50, axis=0)
    fake = np.repeat([[-1.0, 1.0], [1.0, -1.0]], 50, axis=0)
    pixels = decode(scatter(real, fake))[60:]  # below the legend
    assert pixels.shape[:2] == (540, 600)
    # y points up in the plane and down in a picture: real points lie bottom left and top right
    left, right, top, bottom = np.s_[:300], np.s_[300:], np.s_[:245], np.s_[245:]
    assert near(pixels[bottom, left], ORANGE).sum() > 5
    assert near(pixels[top, right], ORANGE).sum() > 5
    assert near(pixels[top, left], BLUE).sum() > 5
    assert near(pixels[bottom, right], BLUE).sum() > 5
    assert not near(pixels[top, left], ORANGE).any()
    assert not near(pixels[top, right], BLUE).any()


def test_samples_outside_do_not_change_the_range():
    real = np.array([[-1.0, -1.0], [1.0, 1.0]])
    inside = np.array([[0.0, 0.0]])
    outside = np.array([[0.0, 0.0], [1e6, 0.0], [np.nan, 0.0]])
    without, beyond = decode(scatter(real, inside)), decode(scatter(real, outside))
    assert (without[60:] == beyond[60:]).all()
    assert (without[:60] != beyond[:60]).any()  # the legend counts them


def test_critic_is_scored_on_a_grid_and_its_level_lines_are_drawn():
    real = np.array([[-1.0, -1.0], [1.0, 1.0]])
    asked = []

    def critic(points):
        asked.append(points)
        return points[:, 0]

    pixels = decode(scatter(real, real, critic))
    (points,) = asked
    assert points.shape == (128 * 128, 2)
    assert points.dtype == np.float32
    np.testing.assert_allclose(points.min(axis=0), -1.15, rtol=1e-6)
    np.testing.assert_allclose(points.max(axis=0), 1.15, rtol=1e-6)
    plain = decode(scatter(real, real))
    # Level lines of x are upright: the middle row meets many of them, and has none without a critic.
    row = 300
    dark = (pixels[row, 60:560, 0] < 250).sum() - (plain[row, 60:560, 0] < 250).sum()
    assert dark > 12


@pytest.mark.parametrize("value", [0.0, np.nan])
def test_a_critic_without_level_lines_is_drawn_without(value):
    real = np.array([[-1.0, -1.0], [1.0, 1.0]])
    pixels = decode(scatter(real, real, lambda points: np.full(len(points), value)))
    assert (pixels == decode(scatter(real, real))).all()


def test_the_picture_suits_the_shape():
    points = np.array([[-1.0, -1.0], [1.0, 1.0]])
    images = np.zeros((4, 8, 8, 1))
    assert picture(images) == image_grid(images)
    assert picture(points, points) == scatter(points, points)
    assert picture(points) is None
    assert picture(np.zeros((4, 3)), np.zeros((4, 3))) is None
    assert picture(np.zeros((4, 8, 8, 2))) is None
    assert picture(np.zeros((4, 8, 8))) is None
