"""Stacks of three digits, against the hash of their numbers in Python's integers."""

import numpy as np
import pytest
import tensorflow as tf
from idxfiles import write
from making import dataset as made
from networks_by_hand import splitmix64

import ganlab

NUMBERS = np.array([0, 1, 5, 77, 2**40])
PIXELS = np.random.default_rng(0).integers(0, 256, (11, 6, 5), np.uint8)
LABELS = np.arange(11, dtype=np.uint8) % 10


def stacked(dataset):
    return made("stacked_mnist", dataset=dataset)


@pytest.fixture
def digits(tmp_path):
    files = {"images": write(tmp_path / "images", PIXELS), "labels": write(tmp_path / "labels", LABELS)}
    return made("idx", **files)


def chosen(seed, count=11):
    """Which images three channels show, from SplitMix64 in Python's integers."""
    bits = [[splitmix64(3 * int(n) + c, seed=seed, stream=104) for c in (1, 2, 3)] for n in NUMBERS]
    return np.array([[(b >> 40) * count >> 24 for b in row] for row in bits])


@pytest.mark.parametrize("seed", [0, 3])
def test_channels_are_the_images_that_number_and_seed_choose(digits, through_pipeline, seed):
    dataset = stacked(digits)
    assert (dataset.sample_shape, dataset.size, dataset.classes) == ((6, 5, 3), None, 1000)
    expected = np.moveaxis(PIXELS[chosen(seed)], 1, 3).astype(np.float64) / 127.5 - 1.0
    np.testing.assert_allclose(through_pipeline(dataset, NUMBERS, 5, seed), expected, atol=1e-7)
    np.testing.assert_allclose(through_pipeline(dataset, NUMBERS, 1, seed), expected, atol=1e-7)
    labels = dataset.labels(tf.constant(NUMBERS), seed)
    np.testing.assert_array_equal(labels, LABELS[chosen(seed)].astype(int) @ [100, 10, 1])


def test_digits_are_equally_likely_and_independent(digits):
    labels = np.asarray(stacked(digits).labels(tf.range(60_000, dtype=tf.int64), 0))
    counts = np.bincount(labels, minlength=1000).reshape(10, 10, 10)
    # Two of the eleven images are of digit 0. Chi-squared of 999 degrees: its 99.9th percentile is 1143.
    share = np.array([2, *[1] * 9]) / 11
    expected = 60_000 * np.einsum("i,j,k->ijk", share, share, share)
    assert np.sum((counts - expected) ** 2 / expected) < 1143


def test_another_set_of_digits_has_another_fingerprint(digits):
    assert stacked(digits).fingerprint() != digits.fingerprint()
    assert stacked(made("digits")).fingerprint() != stacked(digits).fingerprint()


@pytest.mark.parametrize(
    ("name", "arguments", "rule"),
    [
        ("gaussian_ring", {}, r"has examples of shape \(2,\); they must be grey images, \(height, width, 1\)\."),
        ("photo_patches", {}, r"has examples of shape \(32, 32, 3\); they must be grey"),
        ("two_images", {}, r"has endless examples; there must be at most 16,777,216"),
        ("glyphs", {"size": 2**24 + 1}, r"has 16777217 examples"),
    ],
)
def test_what_cannot_be_stacked_is_refused(name, arguments, rule):
    with pytest.raises(ganlab.ConfigError, match=rf"^datasets\.stacked_mnist\.dataset = .* {rule}"):
        stacked(made(name, **arguments))


def test_images_without_labels_or_with_too_many_are_refused(tmp_path):
    images, labels = write(tmp_path / "images", PIXELS), write(tmp_path / "labels", LABELS)
    for said, more in (("no", {}), ("101", {"labels": labels, "classes": 101})):
        with pytest.raises(ganlab.ConfigError, match=f"has {said} classes; there must be labels of at most 100 cl"):
            stacked(made("idx", images=images, **more))
