"""Precision, recall, density and coverage against loops that follow the papers word by word."""

import math

import numpy as np
import pytest
from ganlab_builtin.evaluators.neighbours import covered, density_and_coverage, neighbour_radii
from measured import Halves, gaussian, measure, normal
from small import Points

from ganlab import ConfigError, IncompatibleError

RANDOM = np.random.default_rng(1)


def reach(points, k):
    """For each point, the distance to its k-th nearest other."""
    return [sorted(math.dist(p, q) for j, q in enumerate(points) if j != i)[k - 1] for i, p in enumerate(points)]


def share_inside(queries, centres, radii):
    inside = [any(math.dist(q, c) <= r for c, r in zip(centres, radii, strict=True)) for q in queries]
    return sum(inside) / len(inside)


@pytest.fixture(scope="module")
def drawn():
    """A dataset, the samples that an evaluator draws from it, and a generator that overlaps with it in part."""
    rows = RANDOM.normal(size=(90, 3)).astype(np.float32)
    shuffled = rows[np.random.default_rng(0).permutation(90)]
    generated = normal(1.0, 0.4, d=3)(45, 0)
    return Points(rows), shuffled[:45], shuffled[45:], generated


@pytest.mark.parametrize("k", [1, 3])
def test_precision_and_recall_are_the_naive_ones(drawn, k):
    dataset, real, other, generated = drawn
    figures = measure("precision_recall", normal(1.0, 0.4, d=3), dataset, neighbours=k)
    assert figures["precision"] == pytest.approx(share_inside(generated, real, reach(real, k)))
    assert figures["recall"] == pytest.approx(share_inside(real, generated, reach(generated, k)))
    assert figures["real_precision"] == pytest.approx(share_inside(other, real, reach(real, k)))
    assert 0 < figures["recall"] < figures["precision"] <= 1  # so that mixing them up would show


@pytest.mark.parametrize("k", [2, 5])
def test_density_and_coverage_are_the_naive_ones(drawn, k):
    dataset, real, other, generated = drawn
    figures = measure("density_coverage", normal(1.0, 0.4, d=3), dataset, neighbours=k)
    radii = reach(real, k)
    for samples, prefix in ((generated, ""), (other, "real_")):
        inside = [[math.dist(s, c) <= r for s in samples] for c, r in zip(real, radii, strict=True)]
        assert figures[f"{prefix}density"] == pytest.approx(np.sum(inside) / (k * len(samples)))
        assert figures[f"{prefix}coverage"] == pytest.approx(np.mean([any(row) for row in inside]))
    assert figures["coverage"] < 0.8 * figures["real_coverage"]


def test_blocks_give_the_same_figures(drawn, monkeypatch):
    names = ("precision_recall", "density_coverage")
    whole = [measure(name, normal(d=3), drawn[0]) for name in names]
    monkeypatch.setattr("ganlab_builtin.evaluators.neighbours._BLOCK", 7)
    assert [measure(name, normal(d=3), drawn[0]) for name in names] == whole


def test_a_perfect_generator_has_the_papers_score():
    n, k = 2000, 5
    figures = measure("density_coverage", normal(), gaussian(), samples=n, neighbours=k)
    expected = 1 - np.prod([(n - 1 - i) / (2 * n - 1 - i) for i in range(k)])
    assert expected == pytest.approx(1 - 2**-k, abs=1e-3)
    # Each of n balls is empty with probability 1/32: standard error 0.004 if they were independent.
    assert figures["coverage"] == pytest.approx(expected, abs=0.02)
    assert figures["density"] == pytest.approx(1.0, abs=0.05)


def test_a_collapsed_generator_has_precision_and_no_recall():
    dataset = gaussian()
    real = np.asarray(dataset.examples(np.arange(500), 0))

    def collapsed(n, seed):
        return np.repeat(real[:1], n, axis=0)

    found = measure("precision_recall", collapsed, dataset, samples=500)
    assert found["precision"] == 1.0
    assert found["recall"] == 1 / 500  # the example itself
    assert measure("density_coverage", collapsed, dataset, samples=500)["coverage"] < 0.05


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("name", ["precision_recall", "density_coverage"])
def test_one_sample_that_is_not_finite_leaves_no_figure(name, odd):
    def broken(n, seed):
        points = normal(std=0.01)(n, seed)
        points[0, 0] = odd
        return points

    class Clipped(Halves):
        def embed(self, x):
            return np.nan_to_num(x, posinf=1.0, neginf=-1.0)

    for features in (None, Clipped()):
        for figure, value in measure(name, broken, gaussian(), samples=50, resamples=3, features=features).items():
            assert math.isfinite(value) == figure.startswith("real_"), figure


def test_scale_does_not_matter_and_features_are_used():
    features, dataset = Halves(), gaussian()
    for name in ("precision_recall", "density_coverage"):
        plain = measure(name, normal(1.0), dataset, samples=100)
        assert measure(name, normal(1.0), dataset, samples=100, features=features) == plain
    assert features.prepared == [dataset] * 2


def test_more_neighbours_than_examples_are_refused():
    with pytest.raises(ConfigError, match=r"precision_recall\.samples = 3 must be above .*neighbours, which is 3"):
        measure("precision_recall", normal(), gaussian(), samples=3)
    with pytest.raises(IncompatibleError, match="looks for 5 neighbours among 4 examples, which is half of Points"):
        measure("density_coverage", normal(), Points(RANDOM.normal(size=(8, 2))))


def test_ties_count_as_inside():
    # On the line, radii to the nearest neighbour: 1 around 0 and 1, 2 around 3. A sample at -1 lies on the edge of the
    # ball around 0, and one at 5 on that around 3; prdc, which compares with <, has neither.
    real, samples = np.array([[0.0], [1.0], [3.0]]), np.array([[-1.0], [5.0]])
    radii = neighbour_radii(real, 1)
    np.testing.assert_array_equal(radii, [1.0, 1.0, 4.0])
    assert covered(samples, real, radii) == 1.0
    assert density_and_coverage(samples, real, radii, 1) == (1.0, 2 / 3)
