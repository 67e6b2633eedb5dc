"""DiffAugment against loops of numpy with the same random numbers, and its gradient."""

import numpy as np
import pytest
import tensorflow as tf
from known import Known

import ganlab
from ganlab.errors import ConfigError, IncompatibleError

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.uniform(-1, 1, size=(6, 8, 10, 3)).astype(np.float32)


def applied(policy):
    replica = Known()
    found = ganlab.component("augmentations", "diff_augment")(policy=policy).apply(tf.constant(IMAGES), {}, replica)
    return found.numpy(), replica.drawn


def test_color_moves_brightness_and_scales_saturation_and_contrast():
    found, (drawn,) = applied("color")
    for image, (brightness, saturation, contrast), other in zip(IMAGES.astype(np.float64), drawn, found, strict=True):
        image = image + brightness - 0.5
        grey = image.mean(axis=2, keepdims=True)
        image = (image - grey) * 2 * saturation + grey
        image = (image - image.mean()) * (contrast + 0.5) + image.mean()
        np.testing.assert_allclose(other, image, rtol=1e-4, atol=1e-6)


def test_translation_moves_by_an_eighth_at_most_and_fills_with_zeros():
    found, (drawn,) = applied("translation")
    moves = set()
    for image, draw, other in zip(IMAGES, drawn, found, strict=True):
        down, across = int(draw[0] * 3) - 1, int(draw[1] * 3) - 1  # 8 / 8 and 10 / 8, both rounded to 1
        expected = np.zeros_like(image)
        for i in range(8):
            for j in range(10):
                if 0 <= i - down < 8 and 0 <= j - across < 10:
                    expected[i, j] = image[i - down, j - across]
        np.testing.assert_array_equal(other, expected)
        moves.add((down, across))
    assert len(moves) > 2


def test_cutout_sets_one_rectangle_of_half_the_sides_to_zero():
    found, (drawn,) = applied("cutout")
    for image, draw, other in zip(IMAGES, drawn, found, strict=True):
        expected = image.copy()
        top, left = int(draw[0] * 9) - 2, int(draw[1] * 10) - 2  # half of 8 is 4, of 10 is 5
        expected[max(top, 0) : top + 4, max(left, 0) : left + 5] = 0.0
        np.testing.assert_array_equal(other, expected)


def test_wrong_policies_and_points_are_refused():
    made = ganlab.component("augmentations", "diff_augment")
    with pytest.raises(ConfigError, match="must name some of color, translation, cutout"):
        made(policy="colour")
    with pytest.raises(IncompatibleError, match="changes images"):
        made().apply(tf.zeros([4, 2]), {}, Known())
