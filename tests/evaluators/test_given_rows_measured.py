"""evaluators.condition_accuracy and evaluators.reconstruction, against numbers by hand."""

import numpy as np
import pytest
import tensorflow as tf

import ganlab


def evaluator(name, **settings):
    return ganlab.component("evaluators", name)(**settings)


class Drawn:
    """Samples of a function of what is given, in the place of a generator's."""

    def __init__(self, function, name, given):
        self._function, self._name, self._given = function, name, given

    def given(self, n, seed):
        return {self._name: self._given[:n]}

    def __call__(self, n, seed, **asked):
        return self._function(asked.get(self._name, self._given[:n]))


SHOWERS = ganlab.component("datasets", "showers")(layers=3, resolution=0.2)
ASKED = np.random.default_rng(0).uniform(0.5, 1.5, (4000, 1))


def accuracy(function):
    drawn = Drawn(function, "conditions", ASKED)
    return evaluator("condition_accuracy", samples=4000, bins=4).evaluate(drawn, SHOWERS, None)


def test_samples_like_the_data_are_as_good_as_the_data():
    random = np.random.default_rng(1)

    def like(energy):
        means = energy * SHOWERS.shares
        return means + 0.2 * np.sqrt(means) * random.standard_normal(means.shape)

    figures = accuracy(like)
    # The correlation of E and E + a sqrt(E) e: sqrt(v / (v + a^2 m)) with variance v and mean m of E.
    expected = np.sqrt((1 / 12) / (1 / 12 + 0.04))
    assert figures["correlation"] == pytest.approx(expected, abs=0.02)
    assert figures["real_correlation"] == pytest.approx(expected, abs=0.02)
    assert max(figures["mean_error"], figures["spread_error"]) < 0.2


def test_samples_that_ignore_what_is_asked_are_uncorrelated_and_far_off_in_the_outer_bins():
    random = np.random.default_rng(2)
    figures = accuracy(lambda energy: np.repeat(random.uniform(0.5, 1.5, energy.shape), 3, axis=1) / 3)
    assert abs(figures["correlation"]) < 0.06
    # The means of the outer quarters lie 0.375 from 1; deviations of a bin are sqrt(0.25^2 / 12 + 0.04 E).
    assert figures["mean_error"] == pytest.approx(0.375 / np.sqrt(0.25**2 / 12 + 0.04 * 0.625), rel=0.15)


def test_samples_of_exactly_the_asked_energy_are_too_narrow():
    figures = accuracy(lambda energy: energy * np.array([0.0, 1.0, 0.0]))
    assert figures["correlation"] == pytest.approx(1.0)
    assert figures["mean_error"] < 0.1
    expected = 1 - (0.25 / np.sqrt(12)) / np.sqrt(0.25**2 / 12 + 0.04 * 1.375)
    assert figures["spread_error"] == pytest.approx(expected, rel=0.15)


def test_reconstruction_is_the_difference_from_the_examples_of_the_sources():
    edges = ganlab.component("datasets", "edges")(side=8, size=50)
    real = edges.examples(tf.range(50, dtype=tf.int64), 0).numpy()
    drawn = Drawn(lambda source: np.repeat(source, 3, axis=-1) / 2, "source", np.ones((5, 8, 8, 1)))
    figures = evaluator("reconstruction", samples=80).evaluate(drawn, edges, None)
    apart = edges.sources(tf.range(50, dtype=tf.int64), 0).numpy() / 2 - real
    assert figures == pytest.approx({"absolute_error": np.abs(apart).mean(), "squared_error": (apart**2).mean()})


@pytest.mark.parametrize(
    ("name", "message"), [("condition_accuracy", "takes conditions"), ("reconstruction", "dataset of pairs")]
)
def test_other_data_are_refused(name, message):
    with pytest.raises(ganlab.errors.IncompatibleError, match=message):
        evaluator(name).evaluate(
            Drawn(lambda x: x, "labels", ASKED), ganlab.component("datasets", "swiss_roll")(), None
        )
