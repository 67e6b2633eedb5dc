"""Modes of stacked digits, against counts and a divergence in numpy."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import ganlab

FOLDER = os.environ.get("GANLAB_MNIST")


class Brightness(ganlab.Features):
    """Names the class of a single image by its mean: 0 for -1, 9 for 1."""

    def __init__(self, words=None):
        self.prepared, self.asked, self._words = [], 0, words

    def prepare(self, dataset):
        self.prepared.append(dataset)

    def probabilities(self, x):
        self.asked += len(x)
        classes = np.nan_to_num(np.round((x.mean(axis=(1, 2, 3)) + 1.0) * 4.5)).astype(int)
        return None if self._words == "none" else np.eye(10)[classes]

    def diagnose(self):
        return self._words


class Single(ganlab.Dataset):
    """Ten grey images of one brightness each, of which the class is the number."""

    sample_shape, size, classes = (2, 3, 1), 10, 10

    def examples(self, numbers, seed):
        return tf.ones([numbers.shape[0], 2, 3, 1]) * (tf.cast(numbers, tf.float32) / 4.5 - 1.0)[:, None, None, None]

    def labels(self, numbers):
        return numbers


def stacked():
    return ganlab.component("datasets", "stacked_mnist")(dataset=Single())


def images(modes):
    """Stacks that show these numbers of three digits."""
    digits = np.stack([np.asarray(modes) // 100, np.asarray(modes) // 10 % 10, np.asarray(modes) % 10], axis=1)
    return np.broadcast_to((digits / 4.5 - 1.0)[:, None, None, :], (len(digits), 2, 3, 3)).astype(np.float32)


def evaluator(**arguments):
    return ganlab.component("evaluators", "stacked_modes")(**{"features": Brightness(), **arguments})


def measure(x, dataset=None, **arguments):
    return evaluator(samples=len(x), **arguments).evaluate(lambda n, seed: x, dataset or stacked(), None)


def by_numpy(modes):
    """How many modes there are, and their divergence from even ones."""
    counts = np.array([np.sum(np.asarray(modes) == mode) for mode in range(1000)], np.float64)
    p = counts[counts > 0] / counts.sum()
    return float(np.sum(counts > 0)), float(np.sum(p * np.log(p / (1 / 1000))))


def test_modes_and_divergence_are_those_of_numpy():
    modes = np.random.default_rng(0).geometric(0.01, 2500) % 1000
    figures = measure(images(modes))
    count, divergence = by_numpy(modes)
    assert 100 < count < 1000
    assert figures["modes"] == count
    assert figures["reverse_kl"] == pytest.approx(divergence, rel=1e-12)
    # Real examples are counted alike: here by the labels that the dataset knows.
    real = by_numpy(stacked().labels(tf.range(2500, dtype=tf.int64), 0))
    assert (figures["real_modes"], figures["real_reverse_kl"]) == (real[0], pytest.approx(real[1], rel=1e-12))


def test_each_mode_once_is_even_and_one_mode_is_log_k_away():
    assert measure(images(np.arange(1000)))["modes"] == 1000
    assert measure(images(np.arange(1000)))["reverse_kl"] == pytest.approx(0.0, abs=1e-12)
    one = measure(images([307] * 5))
    assert (one["modes"], one["reverse_kl"]) == (1, pytest.approx(math.log(1000)))


def test_a_sample_that_is_not_finite_is_of_no_mode():
    x = images([307, 307, 5, 5])
    x[2, 0, 0, 1] = np.nan
    figures = measure(x)
    assert figures["modes"] == 2
    assert figures["reverse_kl"] == pytest.approx(2 / 3 * math.log(2000 / 3) + 1 / 3 * math.log(1000 / 3))
    nothing = measure(np.full_like(x, np.inf))
    assert (nothing["modes"], nothing["reverse_kl"]) == (0, pytest.approx(math.log(1000)))


def test_samples_are_drawn_in_parts_and_real_examples_classified_once():
    drawn, dataset = [], stacked()

    def sample(n, seed, *, start=0):
        drawn.append((n, seed, start))
        return images(np.arange(start, start + n) % 1000)

    made = evaluator(samples=2300, seed=4)
    first = made.evaluate(sample, dataset, None)
    assert drawn == [(1000, 4, 0), (1000, 4, 1000), (300, 4, 2000)]
    assert first["modes"] == 1000
    assert made.features.prepared == [dataset.digits]
    assert made.features.asked == 2 * 3 * 2300
    assert made.evaluate(sample, dataset, None) == first
    assert made.features.asked == 3 * 3 * 2300
    assert evaluator(samples=26_000).samples == ganlab.component("evaluators", "stacked_modes")().samples


def test_limits_are_all_modes_and_the_divergence_of_one():
    limits = evaluator().limits(stacked())
    assert limits["modes"] == limits["real_modes"] == (0, 1000)
    assert limits["reverse_kl"] == limits["real_reverse_kl"] == (0, pytest.approx(math.log(1000)))


def test_lost_modes_and_a_useless_classifier_are_reported():
    assert evaluator().diagnose(measure(images(np.arange(600)))) is None
    lost = evaluator().diagnose(measure(images(np.arange(400))))
    assert lost.startswith("The samples are spread as if over 40% of the modes")
    assert evaluator(features=Brightness("Useless.")).diagnose(measure(images(np.arange(600)))) == "Useless."


def test_what_cannot_be_counted_is_refused():
    for x, more, message in (
        (images([1]), {"dataset": Single()}, r"cannot measure Single, which is not stacked .* Drop it"),
        (images([1])[..., :1], {}, r"samples of shape \(2, 3, 1\), and the examples are of shape"),
        (images([1]), {"features": Brightness("none")}, r"needs class probabilities, and Brightness gives none\. Set "),
    ):
        with pytest.raises(ganlab.IncompatibleError, match=message):
            measure(x, **more)


@pytest.mark.slow
def test_a_classifier_is_trained_on_the_single_digits_once(tmp_path, monkeypatch, cpus):
    monkeypatch.setenv("GANLAB_CACHE", str(tmp_path))
    dataset = ganlab.component("datasets", "stacked_mnist")(dataset=ganlab.component("datasets", "digits")())

    def sample(n, seed):
        return np.asarray(dataset.examples(tf.range(10**6, 10**6 + n, dtype=tf.int64), seed))

    found = []
    for replicas in (2, 1):
        with ganlab.component("strategies", "mirrored")(virtual_replicas=replicas).scope():
            found.append(ganlab.component("evaluators", "stacked_modes")(samples=3000).evaluate(sample, dataset, None))
    assert found[0] == found[1]  # the second one's was read
    assert len(list((tmp_path / "features").iterdir())) == 1
    real = by_numpy(dataset.labels(tf.range(3000, dtype=tf.int64), 0))
    # Nine in a thousand digits may be misread; a stack has three.
    assert found[0]["real_modes"] == pytest.approx(real[0], abs=0.03 * 1000)
    assert found[0]["real_reverse_kl"] == pytest.approx(real[1], abs=0.02)


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER, reason="GANLAB_MNIST names no folder with MNIST's four IDX files")
def test_the_classifier_reads_the_test_digits_of_mnist():
    def part(name):
        found = {kind: next(Path(FOLDER).glob(f"{name}-{kind}*")) for kind in ("images", "labels")}
        return ganlab.component("datasets", "idx")(**{kind: str(path) for kind, path in found.items()})

    training, test = part("train"), part("t10k")
    assert (training.size, test.size, training.sample_shape) == (60_000, 10_000, (28, 28, 1))
    classifier = ganlab.component("features", "classifier")()
    classifier.prepare(training)
    numbers = tf.range(10_000, dtype=tf.int64)
    named = classifier.probabilities(np.asarray(test.examples(numbers, 0))).argmax(axis=1)
    accuracy = np.mean(named == np.asarray(test.labels(numbers)))
    # 98.75% was measured, with a sampling error of 0.11%.
    assert accuracy == pytest.approx(0.9875, abs=0.004)
    assert classifier.held_out_accuracy == pytest.approx(accuracy, abs=0.006)
