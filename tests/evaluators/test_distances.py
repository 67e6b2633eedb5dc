"""Distances between generated and real features: against closed forms, naive sums and scipy."""

import numpy as np
import pytest
from ganlab_builtin.evaluators.comparing import Compared, OverFeatures
from ganlab_builtin.evaluators.frechet import gaussian_frechet, moments
from ganlab_builtin.evaluators.kernel import polynomial_mmd
from measured import Halves, gaussian, measure, normal, scipys_frechet
from small import Points

import ganlab
from ganlab.transport import exact_w1, sliced_wasserstein

RANDOM = np.random.default_rng(0)
DISTANCES = {"exact_w1": 1000, "sliced_wasserstein": 2000, "frechet_distance": 2000, "kid": 2000}


def covariance(d):
    root = RANDOM.normal(size=(d, d))
    return root @ root.T


def test_frechet_of_round_gaussians_is_the_closed_form():
    # Of N(m, s^2 I) and N(0, r^2 I) in d dimensions: |m|^2 + d (s - r)^2.
    for d, m, s, r in ((1, 2.0, 1.0, 3.0), (5, 0.5, 2.0, 2.0), (3, 0.0, 1.0, 4.0)):
        found = gaussian_frechet(np.full(d, m), s**2 * np.eye(d), np.zeros(d), r**2 * np.eye(d))
        assert found == pytest.approx(d * m**2 + d * (s - r) ** 2, rel=1e-12)


def test_frechet_equals_scipys_root_of_the_product():
    for d in (2, 7, 30):
        arguments = RANDOM.normal(size=d), covariance(d), RANDOM.normal(size=d), covariance(d)
        assert gaussian_frechet(*arguments) == pytest.approx(scipys_frechet(*arguments), rel=1e-8)


def test_frechet_handles_covariances_without_full_rank():
    # Two points each, on one line: variances 2 and 8 along it, means 3 apart.
    x, y = np.array([[0.0, 0.0, 1.0], [2.0, 0.0, 1.0]]), np.array([[2.0, 0.0, 1.0], [6.0, 0.0, 1.0]])
    expected = 3.0**2 + (np.sqrt(2) - np.sqrt(8)) ** 2
    assert gaussian_frechet(*moments(x), *moments(y)) == pytest.approx(expected, rel=1e-9)
    assert gaussian_frechet(*moments(x), *moments(x)) == pytest.approx(0.0, abs=1e-9)


def test_kid_of_large_samples_is_taken_in_blocks_to_the_same_number(monkeypatch):
    x, y = RANDOM.normal(size=(50, 3)), RANDOM.normal(size=(40, 3))
    whole = polynomial_mmd(x, y, degree=2)
    monkeypatch.setattr("ganlab_builtin.evaluators.kernel._BLOCK", 7)
    assert polynomial_mmd(x, y, degree=2) == pytest.approx(whole, rel=1e-10)


@pytest.mark.parametrize("name", DISTANCES)
def test_real_against_real_is_near_zero_and_noise_is_far(name):
    far = measure(name, normal(4.0), gaussian(), samples=DISTANCES[name])
    near = measure(name, normal(0.0), gaussian(), samples=DISTANCES[name])
    assert far["real_against_real"] == near["real_against_real"]
    assert abs(near["distance"]) < 0.05 * far["distance"]
    assert abs(near["real_against_real"]) < 0.05 * far["distance"]


@pytest.mark.parametrize("name", ["exact_w1", "sliced_wasserstein"])
def test_transport_is_between_the_samples_that_are_drawn(name):
    rows = RANDOM.normal(size=(40, 2)).astype(np.float32)
    generated = normal(1.0)(20, 3)
    seen = []

    def sample(n, seed):
        seen.append((n, seed))
        return generated

    figures = measure(name, sample, Points(rows), samples=500, seed=3)
    assert seen == [(20, 3)]
    shuffled = rows[np.random.default_rng(3).permutation(40)]
    function = exact_w1 if name == "exact_w1" else lambda x, y: sliced_wasserstein(x, y, seed=3)
    assert figures["distance"] == pytest.approx(function(generated, shuffled[:20]), rel=1e-12)
    assert figures["real_against_real"] == pytest.approx(function(shuffled[20:], shuffled[:20]), rel=1e-12)


@pytest.mark.parametrize(("name", "power"), [("exact_w1", 1), ("sliced_wasserstein", 1), ("frechet_distance", 2)])
def test_features_decide_the_space(name, power):
    features, dataset = Halves(), gaussian()
    pixels = measure(name, normal(1.0), dataset, samples=100)
    halved = measure(name, normal(1.0), dataset, samples=100, features=features)
    explicit = measure(name, normal(1.0), dataset, samples=100, features=ganlab.component("features", "pixels")())
    assert halved["distance"] == pytest.approx(pixels["distance"] / 2**power, rel=1e-9)
    assert explicit == pixels
    assert features.prepared == [dataset]


@pytest.mark.parametrize("name", DISTANCES)
def test_samples_that_are_not_finite_have_no_distance(name):
    figures = measure(name, lambda n, seed: np.full((n, 2), np.inf, np.float32), gaussian(), samples=50)
    assert np.isnan(figures["distance"])
    assert np.isfinite(figures["real_against_real"])


@pytest.mark.parametrize("name", [*DISTANCES, "precision_recall", "density_coverage"])
def test_samples_of_another_shape_are_refused(name):
    with pytest.raises(ganlab.IncompatibleError, match=rf"{name} drew samples of shape \(3,\).*of shape \(2,\)"):
        measure(name, normal(d=3), gaussian(), samples=50)


@pytest.mark.parametrize("name", [*DISTANCES, "precision_recall"])
def test_too_few_examples_are_refused(name):
    with pytest.raises(ganlab.IncompatibleError, match=f"{name} compares two halves.*Points has 3 in all"):
        measure(name, normal(), Points(np.zeros((3, 2))))


def test_frechet_refuses_too_many_features():
    with pytest.raises(ganlab.IncompatibleError, match=r"Gaussians of 4100 features.*@features\.classifier"):
        measure("frechet_distance", normal(d=4100), gaussian(4100), samples=2)


def test_the_same_real_examples_are_measured_once_and_others_anew():
    class Distance(OverFeatures):
        features = None

    def measure(x, y):
        pairs.append((x[0, 0], y[0, 0]))
        return abs(x.mean() - y.mean())

    def distances(*values):
        return evaluator.distances(Compared(*(np.full((3, 2), value) for value in values)), measure)

    evaluator, pairs = Distance(), []
    assert distances(5.0, 1.0, 2.0) == {"distance": 4.0, "real_against_real": 1.0}
    assert distances(3.0, 1.0, 2.0) == {"distance": 2.0, "real_against_real": 1.0}
    assert pairs == [(2.0, 1.0), (5.0, 1.0), (3.0, 1.0)]
    assert distances(3.0, 1.0, 4.0) == {"distance": 2.0, "real_against_real": 3.0}
