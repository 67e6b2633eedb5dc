"""ADA's changes against numpy and scipy with the same random numbers, and its probability by hand."""

import numpy as np
import pytest
import tensorflow as tf
from ganlab_builtin.augmentations.changes import CHANGES
from known import Known
from scipy.ndimage import map_coordinates
from scipy.spatial.transform import Rotation

import ganlab
from ganlab.errors import ConfigError, IncompatibleError

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.uniform(-1, 1, size=(12, 8, 8, 3)).astype(np.float32)


class Constant:
    """A replica that draws one number."""

    def __init__(self, value):
        self.value = value

    def uniform(self, shape):
        return tf.fill(shape, self.value)


def made(**arguments):
    return ganlab.component("augmentations", "ada")(**arguments)


def state(probability):
    return {"probability": tf.constant(probability)}


def applied(changes, probability=0.7, images=IMAGES):
    replica = Known()
    found = made(changes=changes).apply(tf.constant(images), state(probability), replica).numpy()
    return found, replica.drawn[0] < probability, *replica.drawn[1:]


def test_flip_mirrors_half_of_those_chosen():
    found, on, coin = applied("flip")
    expected = [image[:, ::-1] if o and c < 0.5 else image for image, o, c in zip(IMAGES, on, coin, strict=True)]
    np.testing.assert_array_equal(found, expected)


def test_rotate_turns_by_right_angles():
    images = np.tile(IMAGES, [4, 1, 1, 1])
    found, on, draw = applied("rotate", images=images)
    expected = [np.rot90(image, int(4 * d)) if o else image for image, o, d in zip(images, on, draw, strict=True)]
    np.testing.assert_array_equal(found, expected)
    assert {int(4 * d) for o, d in zip(on, draw, strict=True) if o} == {0, 1, 2, 3}
    oblong = IMAGES[:, :6]
    found, on, draw = applied("rotate", images=oblong)
    expected = [image[::-1, ::-1] if o and d >= 0.5 else image for image, o, d in zip(oblong, on, draw, strict=True)]
    np.testing.assert_array_equal(found, expected)


def moved(images, on, sources):
    """The images that are on, at the places `sources(k, down, across)` of image k, by scipy in float64."""
    down, across = np.meshgrid(*(np.arange(side) - (side - 1) / 2 for side in images.shape[1:3]), indexing="ij")
    expected = images.astype(np.float64)
    for k in np.flatnonzero(on):
        places = np.array(sources(k, down, across)) + np.reshape(images.shape[1:3], (2, 1, 1)) / 2 - 0.5
        channels = np.moveaxis(expected[k], 2, 0)
        expected[k] = np.stack([map_coordinates(c, places, order=1, mode="mirror") for c in channels], axis=2)
    return expected


OBLONG = np.repeat(np.repeat(IMAGES, 3, axis=1), 2, axis=2)


def test_translate_moves_by_whole_pixels():
    found, on, draw = applied("translate", images=OBLONG)
    by = np.round((2 * draw.astype(np.float64) - 1) * np.array([24, 16]) / 8)
    expected = moved(OBLONG, on, lambda k, down, across: (down - by[k, 0], across - by[k, 1]))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert (np.abs(by[on]).max(axis=0) == [3, 2]).all()


def test_shift_moves_by_fractions_of_pixels():
    found, on, draw = applied("shift", images=OBLONG)
    expected = moved(OBLONG, on, lambda k, down, across: (down - 3 * draw[k, 0], across - 2 * draw[k, 1]))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_scale_and_stretch_are_linear_interpolations_about_the_middle():
    found, on, normal = applied("scale", images=OBLONG)
    factor = 2.0 ** (0.2 * normal)
    expected = moved(OBLONG, on, lambda k, down, across: (down / factor[k], across / factor[k]))
    np.testing.assert_allclose(found, expected, atol=1e-4)
    found, on, normal = applied("stretch", images=OBLONG)
    expected = moved(OBLONG, on, lambda k, down, across: (down * factor[k], across / factor[k]))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_turn_is_a_rotation_about_the_middle():
    found, on, draw = applied("turn", images=OBLONG)
    angle = np.pi * (2 * draw - 1)

    def sources(k, down, across):
        return (
            np.cos(angle[k]) * down + np.sin(angle[k]) * across,
            np.cos(angle[k]) * across - np.sin(angle[k]) * down,
        )

    np.testing.assert_allclose(found, moved(OBLONG, on, sources), atol=1e-4)
    # A quarter of a turn is that of `rotate`.
    np.testing.assert_allclose(moved(IMAGES, [True] + [False] * 11, lambda k, d, a: (a, -d))[0], np.rot90(IMAGES[0]))
    quarter = CHANGES["turn"](tf.constant(IMAGES), tf.fill([12], True), Constant(0.75)).numpy()
    np.testing.assert_allclose(quarter, np.rot90(IMAGES, axes=(1, 2)), atol=1e-5)


def test_colours_follow_their_formulas():
    found, on, normal = applied("brightness")
    np.testing.assert_allclose(found, IMAGES + (0.2 * normal * on)[:, None, None, None], rtol=1e-5, atol=1e-6)
    found, on, normal = applied("contrast")
    np.testing.assert_allclose(found, IMAGES * (2 ** (0.5 * normal * on))[:, None, None, None], rtol=1e-5)
    found, on, normal = applied("saturation")
    grey = IMAGES.mean(axis=3, keepdims=True)
    expected = grey + (IMAGES - grey) * (2 ** (normal * on))[:, None, None, None]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    found, on, coin = applied("invert")
    np.testing.assert_allclose(found, IMAGES - 2 * grey * (on & (coin < 0.5))[:, None, None, None], atol=1e-6)


def test_hue_turns_colours_about_the_greys():
    found, on, draw = applied("hue")
    for image, o, d, other in zip(IMAGES, on, draw, found, strict=True):
        turned = Rotation.from_rotvec(o * np.pi * (2 * d - 1) * np.ones(3) / 3**0.5)
        np.testing.assert_allclose(other.reshape(-1, 3), turned.apply(image.reshape(-1, 3)), atol=1e-5)
    np.testing.assert_array_equal(applied("hue", images=IMAGES[..., :1])[0], IMAGES[..., :1])


def test_cutout_leaves_a_hole_of_half_of_each_side():
    found, on, centre = applied("cutout")
    places = (np.arange(8) + 0.5) / 8
    hole = np.abs(places[None] - centre[:, :1])[:, :, None] < 0.25
    hole = hole & (np.abs(places[None] - centre[:, 1:])[:, None] < 0.25) & on[:, None, None]
    np.testing.assert_array_equal(found, np.where(hole[..., None], 0.0, IMAGES))
    assert hole.any()


def test_a_change_that_is_named_twice_is_made_at_least_once_with_the_probability():
    images = np.zeros((6000, 2, 2, 1), np.float32)
    found = made(changes="brightness,brightness").apply(tf.constant(images), state(0.3), Known()).numpy()
    share = (found[:, 0, 0, 0] != 0).mean()
    assert abs(share - 0.3) < 4 * np.sqrt(0.3 * 0.7 / 6000)


def test_probability_is_that_of_each_change():
    ones = np.zeros((4000, 2, 2, 1), np.float32)
    found, *_ = applied("brightness", 0.3, ones)
    share = (found[:, 0, 0, 0] != 0).mean()
    assert abs(share - 0.3) < 4 * np.sqrt(0.3 * 0.7 / 4000)
    replica = Known()
    np.testing.assert_array_equal(made().apply(tf.constant(IMAGES), state(0.0), replica), IMAGES)


def test_another_augmentation_is_made_to_some_examples():
    class Negative(ganlab.Augmentation):
        def initial_state(self):
            return {"updates": tf.constant(0)}

        def apply(self, x, state, replica):
            return -x

        def advance(self, state, scores, replica):
            return {"updates": state["updates"] + 1}

    points, replica = IMAGES[:, 0, 0], Known()
    ada = made(augmentation=Negative(), start=0.5)
    first = ada.initial_state()
    found = ada.apply(tf.constant(points), first, replica)
    np.testing.assert_array_equal(found, np.where((replica.drawn[0] < 0.5)[:, None], -points, points))
    after = ada.advance(first, tf.constant([1.0]), replica)
    assert set(after) == {"probability", "augmentation/updates"}
    assert after["augmentation/updates"] == 1


def test_probability_follows_the_signs_of_real_scores():
    ada, replica = made(images=100.0), Known(count=4)
    sure, unsure = tf.constant([1.0, 2.0, 3.0]), tf.constant([1.0, -2.0, 0.1])
    one = ada.advance(ada.initial_state(), sure, replica)
    assert float(one["probability"]) == pytest.approx(12 / 100)
    assert replica.logged == {"probability": pytest.approx(0.12), "sign": 1.0}
    two = ada.advance(one, sure, replica)
    assert float(two["probability"]) == pytest.approx(0.24)
    assert float(ada.advance(two, unsure, replica)["probability"]) == pytest.approx(0.12)  # their mean sign is 1/3
    assert replica.logged["sign"] == pytest.approx(1 / 3)
    assert ada.advance(state(0.05), unsure, replica)["probability"] == 0.0
    assert ada.advance(state(0.95), sure, replica)["probability"] == 1.0


def test_without_a_target_the_probability_is_what_is_set():
    ada, replica = made(target=None, start=0.4, changes="brightness"), Known()
    ones = tf.zeros([4000, 2, 2, 1])
    share = np.mean(ada.apply(ones, state(0.9), replica)[:, 0, 0, 0] != 0)
    assert share == np.mean(replica.drawn[0] < 0.4)
    sure = tf.constant([1.0, 2.0])
    assert float(ada.advance(ada.initial_state(), sure, replica)["probability"]) == pytest.approx(0.4)
    assert replica.logged["probability"] == pytest.approx(0.4)


def test_gradient_reaches_the_images():
    x = tf.constant(IMAGES)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = made().apply(x, state(1.0), Known())
    assert (tf.reduce_sum(tf.abs(tape.gradient(y, x)), axis=[1, 2, 3]) > 1.0).numpy().all()


def test_wrong_changes_and_points_are_refused():
    with pytest.raises(ConfigError, match=r"changes = 'blur' must name some of flip, rotate"):
        made(changes="blur")
    with pytest.raises(IncompatibleError, match="changes images"):
        made().apply(tf.zeros([4, 2]), state(0.5), Known())
