"""Images without a download: characters drawn in fonts, and crops of photographs."""

import numpy as np
import pytest
import tensorflow as tf
from making import dataset as made
from sklearn.datasets import load_sample_image

from ganlab.errors import ConfigError


def images(dataset, numbers):
    return dataset.examples(tf.constant(numbers, tf.int64), 0).numpy()


def test_crops_are_pixels_of_the_photographs():
    patches = made("photo_patches", side=20)
    found, labels = images(patches, range(40)), patches.labels(tf.range(40, dtype=tf.int64)).numpy()
    photographs = [load_sample_image(name) for name in ("china.jpg", "flower.jpg")]
    assert set(labels) == {0, 1}
    for image, label in zip(found, labels, strict=True):
        pixels = np.rint((image + 1) * 127.5).astype(np.uint8)
        np.testing.assert_allclose(pixels / 127.5 - 1, image, atol=1e-6)
        whole = photographs[label]
        corners = np.argwhere((whole[: 427 - 19, : 640 - 19] == pixels[0, 0]).all(axis=2))
        assert any(np.array_equal(whole[i : i + 20, j : j + 20], pixels) for i, j in corners)
    assert len({image.tobytes() for image in found}) == 40


@pytest.mark.parametrize("side", [16, 40])
def test_characters_are_white_on_black_in_the_middle(side):
    glyphs = made("glyphs", side=side)
    found = images(glyphs, range(200))
    assert found.shape == (200, side, side, 1)
    assert found.min() >= -1
    assert found.max() <= 1
    edge = np.concatenate([found[:, 0], found[:, -1], found[:, :, 0], found[:, :, -1]], axis=1)
    assert (edge < -0.9).mean() > 0.99
    assert (found[:, side // 4 : -side // 4, side // 4 : -side // 4].max(axis=(1, 2)) > 0.5).all()


def test_a_class_is_one_character():
    glyphs = made("glyphs", side=24, characters="Ia8")
    numbers = np.arange(3000)
    labels = glyphs.labels(tf.constant(numbers)).numpy()
    np.testing.assert_allclose(np.bincount(labels) / 3000, 1 / 3, atol=0.05)
    ink = (images(glyphs, numbers[:300])[..., 0] + 1).mean(axis=(1, 2))
    means = [ink[labels[:300] == label].mean() for label in range(3)]
    assert means[0] < 0.8 * min(means[1:])  # I has less ink than the others


def test_a_linear_classifier_finds_most_characters():
    glyphs = made("glyphs", side=16, characters="0123456789", jitter=0.5)
    x = images(glyphs, range(1500)).reshape(1500, -1)
    y = np.eye(10)[glyphs.labels(tf.range(1500, dtype=tf.int64)).numpy()]
    weights = np.linalg.solve(x[:1200].T @ x[:1200] + 30 * np.eye(256), x[:1200].T @ y[:1200])
    assert ((x[1200:] @ weights).argmax(1) == y[1200:].argmax(1)).mean() > 0.85


def test_without_jitter_a_font_and_a_character_make_one_image():
    glyphs = made("glyphs", side=16, characters="B", jitter=0.0)
    assert len({image.tobytes() for image in images(glyphs, range(200))}) == 13


def test_wrong_characters_are_refused():
    for characters in ("", "aa", "é", "a b"):
        with pytest.raises(ConfigError, match="letters and digits of ASCII, each once"):
            made("glyphs", characters=characters)
