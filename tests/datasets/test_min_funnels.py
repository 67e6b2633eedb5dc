"""The pairs of known distance, map and optimal critic, against numpy in float64 and the paper's distances."""

import csv
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from given import pair
from making import dataset as made

import ganlab
from ganlab.transport import exact_w1

PUBLISHED = Path(__file__).parents[2] / "tools" / "w1bench"


make = partial(made, "min_funnels")


def heights(dataset, x):
    """`|x - a_n| + b_n`, by a loop."""
    return np.stack([np.linalg.norm(x - a, axis=1) + b for a, b in zip(dataset.centers, dataset.heights, strict=True)])


def moved_by_bisection(dataset, x):
    """The moved point: where its ray leaves its funnel or the cube by bisection, then the power of the fraction."""
    funnel = heights(dataset, x[None]).argmin()
    centre = dataset.centers[funnel].astype(np.float64)
    distance = np.linalg.norm(x - centre)
    direction = (x - centre) / distance
    inside, outside = distance, 4 * dataset.half_side * len(x) ** 0.5
    for _ in range(60):
        middle = (inside + outside) / 2
        at = centre + middle * direction
        if np.abs(at).max() <= dataset.half_side and heights(dataset, at[None]).argmin() == funnel:
            inside = middle
        else:
            outside = middle
    return centre + (distance / inside) ** dataset.degree * inside * direction


@pytest.mark.slow
@pytest.mark.parametrize(("dims", "funnels", "degree"), [(2, 4, 8.0), (2, 40, 3.0), (5, 9, 8.0), (3, 1, 2.0)])
def test_points_move_along_their_rays(dims, funnels, degree):
    dataset = make(dims=dims, funnels=funnels, degree=degree, half_side=2.0)
    moved, points = pair(dataset, 300)
    expected = np.stack([moved_by_bisection(dataset, x) for x in points])
    np.testing.assert_allclose(moved, expected, atol=2e-4)
    assert np.abs(points).max() <= 2.0
    assert np.linalg.norm(moved - points, axis=1).max() > 0.1


@pytest.mark.parametrize(("dims", "funnels"), [(2, 16), (7, 5)])
def test_the_potential_is_the_optimal_critic(dims, funnels):
    dataset = make(dims=dims, funnels=funnels)
    moved, points = pair(dataset, 400)
    np.testing.assert_allclose(dataset.potential(points), -heights(dataset, points).min(axis=0), rtol=1e-5)
    # It rises by the length of every move, so the dual's value is the primal's; and it is 1-Lipschitz.
    rise = np.asarray(dataset.potential(moved), np.float64) - np.asarray(dataset.potential(points))
    np.testing.assert_allclose(rise, np.linalg.norm(moved - points, axis=1), atol=1e-5)
    assert exact_w1(moved, points) == pytest.approx(rise.mean(), rel=1e-5)
    step = 1e-6
    slopes = [
        (-heights(dataset, points + step * e).min(axis=0) + heights(dataset, points - step * e).min(axis=0))
        / (2 * step)
        for e in np.eye(dims)
    ]
    np.testing.assert_allclose(dataset.potential_gradient(points), np.transpose(slopes), atol=1e-3)


def test_the_distance_is_the_mean_move():
    dataset = make(dims=3, funnels=6)
    moved, points = pair(dataset, 100_000, seed=5)
    moves = np.linalg.norm(moved - points, axis=1)
    assert dataset.wasserstein == pytest.approx(moves.mean(), abs=5 * moves.std() / 100_000**0.5)


@pytest.mark.slow
def test_the_published_distances():
    # From 4,096 points each: a standard error of 1 to 2%.
    with (PUBLISHED / "published.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["solver"] == "true" and int(row["dimension"]) <= 16]
    errors = []
    for row in rows:
        found = make(dims=int(row["dimension"]), funnels=int(row["funnels"]), path=str(PUBLISHED / "funnels.npz"))
        errors.append(found.wasserstein / float(row["cost"]) - 1)
    assert len(errors) == 12
    assert np.abs(errors).max() < 0.03
    assert abs(np.mean(errors)) < 0.01


def test_the_other_side_of_the_pair_is_the_cube():
    cube = make(dims=4, moved=False)
    moved, points = pair(cube, 5000)
    np.testing.assert_array_equal(moved, points)
    assert cube.wasserstein == 0.0
    np.testing.assert_allclose(points.mean(axis=0), 0.0, atol=0.1)
    np.testing.assert_allclose(points.std(axis=0), 5 / 12**0.5, atol=0.05)


@pytest.mark.parametrize(
    ("arrays", "rule"),
    [
        ({}, "has no array 'centers_2_4'"),
        ({"centers_2_4": np.zeros((4, 2))}, "has no array 'bias_2_4'"),
        ({"centers_2_4": np.zeros((3, 2)), "bias_2_4": np.zeros(4)}, r"shape \(4, 2\) in 'centers_2_4'; .*\(3, 2\)"),
        ({"centers_2_4": np.zeros((4, 2), int), "bias_2_4": np.zeros(4)}, "finite floating-point numbers"),
        ({"centers_2_4": np.full((4, 2), np.nan), "bias_2_4": np.zeros(4)}, "finite floating-point numbers"),
        ({"centers_2_4": np.full((4, 2), 9.0), "bias_2_4": np.zeros(4)}, "outside the cube of half side 2.5"),
        ({"centers_2_4": np.zeros((4, 2)), "bias_2_4": np.zeros(10_000_000)}, "80,000,128 bytes there"),
        ({"centers_2_4": np.array([[{}]] * 4), "bias_2_4": np.zeros(4)}, "cannot be read"),
        (b"PK\x03\x04 and no more", r"cannot be read as a \.npz file"),
    ],
)
def test_a_file_with_something_else_is_refused(tmp_path, arrays, rule):
    file = tmp_path / "other.npz"
    if isinstance(arrays, bytes):
        file.write_bytes(arrays)
    else:
        np.savez_compressed(file, **arrays)
    with pytest.raises(ganlab.ConfigError, match=rule):
        make(path=str(file))


def test_a_critic_is_held_against_the_optimal_one(cpus):
    dataset = make(dims=6, funnels=4)  # in fewer dimensions some points reach the centre, where u has no gradient
    moved, points = (part.astype(np.float32) for part in pair(dataset, 500))

    class View:
        """What the diagnostic sees of the critic -2 u."""

        def __init__(self, data):
            self.dataset = data

        def more(self, n):
            return moved[:n], points[:n]

        def more_labels(self, n):
            return None

        def scores(self, x, labels):
            return 2 * np.asarray(dataset.potential(x))

        def input_gradients(self, x, labels):
            return 2 * np.asarray(dataset.potential_gradient(x))

    diagnostic = ganlab.component("diagnostics", "transport_gradient")(points=400)
    figures = diagnostic.look(View(dataset)).figures
    assert figures["cosine"] == pytest.approx(1.0, abs=1e-5)
    assert figures["squared_error"] == pytest.approx(1.0, abs=1e-5)
    assert figures["estimate"] == pytest.approx(2 * np.linalg.norm(moved - points, axis=1)[:400].mean(), rel=1e-4)
    assert figures["relative_error"] == pytest.approx(figures["estimate"] / dataset.wasserstein - 1)
    with pytest.raises(ganlab.IncompatibleError, match="potential_gradient"):
        diagnostic.look(View(made("gaussian_ring")))
