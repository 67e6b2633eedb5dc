import math

import numpy as np
import pytest
from ganlab_builtin.evaluators.classifying import score
from measured import Halves, gaussian, measure, normal

import ganlab


def test_the_score_lies_between_one_and_the_number_of_classes():
    assert score(np.eye(7)) == pytest.approx(7.0)  # sure of each, and each another
    assert score(np.eye(7)[[3, 3, 3]]) == pytest.approx(1.0)  # sure of one
    assert score(np.full((5, 7), 1 / 7)) == pytest.approx(1.0)  # not sure


def test_the_score_is_the_exponential_of_the_mean_divergence():
    p = np.random.default_rng(0).dirichlet(np.ones(4), size=6)
    marginal = p.mean(axis=0)
    mean = np.mean([sum(row[c] * math.log(row[c] / marginal[c]) for c in range(4)) for row in p])
    assert score(p) == pytest.approx(math.exp(mean))


def test_generated_and_real_examples_are_scored_apart():
    features, dataset = Halves(), gaussian()
    figures = measure("classifier_score", normal(100.0), dataset, features=features, samples=1000)
    assert figures["score"] == 1.0  # one class alone
    real = (np.asarray(dataset.examples(np.arange(1000), 0))[:, 0] > 0).mean()
    entropy = -real * math.log(real) - (1 - real) * math.log(1 - real)
    assert figures["real_score"] == pytest.approx(math.exp(entropy))
    assert features.prepared == [dataset]


def test_a_feature_network_without_classes_is_refused():
    with pytest.raises(ganlab.IncompatibleError, match=r"Pixels gives none\. Set .* = @features\.classifier\(\)"):
        measure("classifier_score", normal(), gaussian(), features=ganlab.component("features", "pixels")())


def test_probabilities_that_are_not_finite_have_no_score():
    assert math.isnan(score(np.array([[0.5, 0.5], [np.nan, np.nan]])))
