"""Optimal transport against brute force, against itself by another method, and against closed forms."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

import ganlab
from ganlab.transport import exact_w1, sliced_wasserstein

RANDOM = np.random.default_rng(0)
METHODS = ["auto", "network_simplex", "assignment"]


def clouds(n, m=None, d=3):
    return RANDOM.normal(size=(n, d)), 1.0 + RANDOM.normal(size=(m or n, d))


@pytest.fixture
def without_pot(monkeypatch):
    """Makes POT appear not to be installed."""

    def refuse(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr("ganlab.lazy.importlib.import_module", lambda name: refuse(name))


@pytest.mark.parametrize("method", METHODS)
def test_six_points_against_six_by_brute_force(method):
    x, y = clouds(6)
    plans = itertools.permutations(range(6))
    best = min(np.mean([math.dist(x[i], y[j]) for i, j in enumerate(plan)]) for plan in plans)
    assert exact_w1(x, y, method=method) == pytest.approx(best, rel=1e-12)


def test_both_methods_agree_on_many_points():
    x, y = clouds(300, d=5)
    assert exact_w1(x, y, method="network_simplex") == pytest.approx(exact_w1(x, y, method="assignment"), rel=1e-10)


def test_weights_and_unequal_counts_against_a_linear_program():
    x, y = clouds(4, 6)
    a, b = RANDOM.dirichlet(np.ones(4)), RANDOM.dirichlet(np.ones(6))
    cost = np.linalg.norm(x[:, None] - y[None], axis=2)
    rows, columns = np.kron(np.eye(4), np.ones(6)), np.kron(np.ones(4), np.eye(6))
    for weights, sums in (((a, b), [*a, *b]), (None, [1 / 4] * 4 + [1 / 6] * 6)):
        expected = linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=sums).fun
        assert exact_w1(x, y, weights) == pytest.approx(expected, rel=1e-8)


def test_on_a_line_sorted_values_are_paired():
    x, y = RANDOM.normal(size=50), RANDOM.exponential(size=50)
    assert exact_w1(x, y) == pytest.approx(np.mean(np.abs(np.sort(x) - np.sort(y))), rel=1e-10)


def test_images_count_as_vectors():
    x, y = clouds(5, d=12)
    assert exact_w1(x.reshape(5, 2, 3, 2), y.reshape(5, 2, 3, 2)) == exact_w1(x, y)


def test_without_pot_equal_counts_are_assigned_and_others_name_the_extra(without_pot):
    x, y = clouds(6)
    assert exact_w1(x, y) == exact_w1(x, y, method="assignment")
    with pytest.raises(ganlab.MissingDependencyError, match=r"ot is not installed.*pip install -e '\.\[eval\]'"):
        exact_w1(x, y[:5])
    with pytest.raises(ganlab.MissingDependencyError, match="ot is not installed"):
        exact_w1(x, y, method="network_simplex")


@pytest.mark.parametrize("order", [1, 2])
def test_a_slice_of_a_line_is_the_sorted_formula(order):
    x, y = RANDOM.normal(size=(80, 1)), 3 * RANDOM.normal(size=(80, 1))
    expected = np.mean(np.abs(np.sort(x[:, 0]) - np.sort(y[:, 0])) ** order) ** (1 / order)
    assert sliced_wasserstein(x, y, projections=5, order=order) == pytest.approx(expected, rel=1e-12)


def test_slices_of_a_translation_have_its_mean_projection():
    # Every slice of x + s is moved by <s, u>, whose mean square over the sphere is |s|^2 / d.
    x = RANDOM.normal(size=(40, 4))
    shift = np.array([3.0, 0.0, 0.0, 4.0])
    found = sliced_wasserstein(x, x + shift, projections=20_000, seed=3)
    # The squared projections of a uniform direction in four dimensions have the standard deviation |s|^2 sqrt(1/32).
    assert found**2 == pytest.approx(25 / 4, abs=4 * 25 * math.sqrt(1 / 32) / math.sqrt(20_000))


def test_slices_use_the_given_number_of_directions_and_the_seed():
    x, y = clouds(30)
    assert sliced_wasserstein(x, y, projections=70) == sliced_wasserstein(x, y, projections=70)
    assert len({sliced_wasserstein(x, y, projections=n, seed=s) for n, s in ((70, 0), (64, 0), (70, 1))}) == 3


def test_samples_that_are_not_finite_have_distance_nan():
    x, y = clouds(5)
    x[2, 1] = np.nan
    assert math.isnan(exact_w1(x, y))
    assert math.isnan(sliced_wasserstein(x, y))


@pytest.mark.parametrize(
    ("x", "y", "options", "error", "message"),
    [
        ((3, 2), (3, 4), {}, ganlab.IncompatibleError, "Points of 2 and of 4 values"),
        ((0, 2), (3, 2), {}, ganlab.IncompatibleError, "Samples of 0 and 3 points"),
        ((3, 2), (3, 2), {"weights": (np.ones(3), np.ones(3))}, ganlab.IncompatibleError, "sum to 3 for 3 points"),
        ((3, 2), (2, 2), {"method": "assignment"}, ganlab.ConfigError, "equally many points"),
        ((3, 2), (3, 2), {"method": "sinkhorn"}, ganlab.ConfigError, "'sinkhorn' must be"),
    ],
)
def test_invalid_transport_problems_are_refused(x, y, options, error, message):
    with pytest.raises(error, match=message):
        exact_w1(np.zeros(x), np.zeros(y), **options)


def test_slices_of_unequal_samples_are_refused():
    with pytest.raises(ganlab.IncompatibleError, match="Samples of 3 and 2 points; slices pair them"):
        sliced_wasserstein(np.zeros((3, 2)), np.zeros((2, 2)))
