"""Measures by class, of a stand-in for a conditional generator, against numpy and scipy."""

import numpy as np
import pytest
import tensorflow as tf
from measured import frechet, measure
from small import Points

import ganlab

MEANS = np.array([[0.0, 0.0], [4.0, 1.0], [-3.0, 2.0]])


class Clouds(Points):
    """Forty points around each of three means, class after class."""

    classes = 3

    def __init__(self):
        super().__init__(np.repeat(MEANS, 40, axis=0) + np.random.default_rng(0).normal(size=(120, 2)))

    def labels(self, numbers):
        return tf.cast(numbers // 40, tf.int64)


class Asked:
    """A conditional generator that is wrong about one sample in four of class 2, and shifted by one along x."""

    classes = 3

    def __call__(self, n, seed, labels=None):
        labels = np.asarray(labels)
        random = np.random.default_rng(seed)
        wrong = (labels == 2) & (np.cumsum(labels == 2) % 4 == 0)
        points = MEANS[np.where(wrong, 0, labels)] + random.normal(size=(n, 2)) * 0.1
        return (points + np.array([1.0, 0.0])).astype(np.float32)


class Nearest(ganlab.Features):
    def embed(self, x):
        return x

    def probabilities(self, x):
        apart = np.linalg.norm(x[:, None] - MEANS[None], axis=2)
        return np.eye(3)[apart.argmin(1)]


def test_accuracy_is_the_share_of_samples_with_the_asked_label():
    figures = measure("label_accuracy", Asked(), Clouds(), features=Nearest(), samples=120)
    points = Clouds()._points
    real = (Nearest().probabilities(points).argmax(1) == np.repeat(range(3), 40)).mean()
    # Ten of the forty samples of class 2 are of class 0.
    assert figures == pytest.approx({"accuracy": 110 / 120, "worst_class": 0.75, "real_accuracy": real})


@pytest.mark.parametrize("samples", [3, 5, 120])
def test_accuracy_counts_every_class_equally_often(samples):
    asked = []

    class Listening(Asked):
        def __call__(self, n, seed, labels=None):
            asked.extend(labels)
            return super().__call__(n, seed, labels)

    measure("label_accuracy", Listening(), Clouds(), features=Nearest(), samples=samples)
    assert np.bincount(asked).tolist() == [samples // 3] * 3


def test_fewer_samples_than_classes_are_refused():
    with pytest.raises(ganlab.ConfigError, match=r"label_accuracy\.samples = 2 must be at least 3"):
        measure("label_accuracy", Asked(), Clouds(), features=Nearest(), samples=2)


def test_distance_within_classes_is_that_of_scipy():
    figures = measure("class_frechet_distance", Asked(), Clouds(), seed=3)
    random, clouds, expected, real = np.random.default_rng(3), Clouds(), [], []
    for label in range(3):
        own = clouds._points[random.permutation(np.arange(40) + 40 * label)]
        fake = Asked()(20, 3, np.full(20, label))
        expected.append(frechet(fake, own[:20]))
        real.append(frechet(own[20:], own[:20]))
    assert [figures[f"class/{label}"] for label in range(3)] == pytest.approx(expected, rel=1e-6)
    assert figures["distance"] == pytest.approx(np.mean(expected), rel=1e-6)
    assert figures["worst_class"] == pytest.approx(max(expected), rel=1e-6)
    assert figures["real_against_real"] == pytest.approx(np.mean(real), rel=1e-6)
    # The shift alone contributes one.
    assert figures["class/0"] > 1 > figures["real_against_real"]


@pytest.mark.parametrize("odd", [np.inf, np.nan])
@pytest.mark.parametrize("name", ["label_accuracy", "class_frechet_distance", "classifier_score"])
def test_one_sample_that_is_not_finite_leaves_no_figure(name, odd):
    class Broken(Asked):
        def __call__(self, n, seed, labels=None):
            points = super().__call__(n, seed, np.arange(n) % 3 if labels is None else labels)
            points[labels == 0 if name == "class_frechet_distance" else 0, 0] = odd
            return points

    arguments = {} if name == "class_frechet_distance" else {"features": Nearest()}
    figures = measure(name, Broken(), Clouds(), **arguments)
    assert {figure for figure, value in figures.items() if np.isnan(value)} == {
        "label_accuracy": {"accuracy", "worst_class"},
        "class_frechet_distance": {"distance", "worst_class", "class/0"},
        "classifier_score": {"score"},
    }[name]


def test_an_unconditional_generator_is_refused():
    def sample(n, seed):
        return np.zeros((n, 2), np.float32)

    for name, arguments in (("label_accuracy", {"features": Nearest()}), ("class_frechet_distance", {})):
        with pytest.raises(ganlab.IncompatibleError, match=f"evaluators.{name} asks for classes") as error:
            measure(name, sample, Clouds(), **arguments)
        assert "the generator is unconditional" in str(error.value)
        assert "architectures." not in str(error.value)  # which one the experiment has is not known here


def test_a_class_with_too_few_examples_is_named():
    class Few(Clouds):
        def labels(self, numbers):
            return tf.where(numbers < 3, tf.constant(2, tf.int64), tf.cast(numbers % 2, tf.int64))

    with pytest.raises(ganlab.IncompatibleError, match="class 2 of Few has 3 examples"):
        measure("class_frechet_distance", Asked(), Few())
