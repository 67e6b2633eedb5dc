"""The published pairs of convex networks, against the potential in float64, differentiated by finite differences."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import ganlab

FILE = Path(__file__).parents[2] / "tools" / "w1bench" / "convex.npz"


def potential(x, w):
    """Of both networks, which the file has side by side, and of the strong convexity of 0.01 each."""
    first, last = w["convex_1"].shape
    parts = (x @ w["quadratic"]) ** 2 + x @ w["linear"] + w["bias"]
    hidden = parts[:, :first]
    for convex, begin, end in (("convex_0", first, 2 * first), ("convex_1", 2 * first, 2 * first + last)):
        hidden = hidden @ w[convex] + parts[:, begin:end]
        hidden = np.where(hidden > 0, hidden, np.expm1(np.minimum(hidden, 0)))
    return hidden @ w["final"] + 2 * 0.01 * (x**2).sum(axis=1) / 2


@pytest.mark.parametrize("dims", [2, 16])
def test_points_move_by_the_gradient_of_a_convex_function(dims):
    with np.load(FILE) as arrays:
        w = {name.rpartition("_")[0]: arrays[name].astype(float) for name in arrays if name.endswith(f"_{dims}")}
    assert min(w[name].min() for name in ("convex_0", "convex_1", "final")) >= 0
    numbers = tf.range(20_000, dtype=tf.int64)
    make = ganlab.component("datasets", "convex_pairs")
    pair, mixture = (make(path=str(FILE), dims=dims, moved=side) for side in (True, False))
    moved, still = (np.asarray(side.examples(numbers, 3), float) for side in (pair, mixture))
    np.testing.assert_array_equal(pair.sources(numbers, 3), still)
    steps = 1e-5 * np.eye(dims)
    slopes = np.transpose([(potential(still[:50] + h, w) - potential(still[:50] - h, w)) / 2e-5 for h in steps])
    np.testing.assert_allclose(moved[:50], (slopes - w["shift"]) * w["scale"], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(moved.mean(axis=0), 0.0, atol=0.04)
    assert moved.var(axis=0).mean() == pytest.approx(1.0, abs=0.03)
    # The mixture's own moments, from its centres and maps.
    np.testing.assert_allclose(still.mean(axis=0), w["centers"].mean(axis=0), atol=0.04)
    spread = (w["maps"] ** 2).sum(axis=2).mean(axis=0) + w["centers"].var(axis=0)
    np.testing.assert_allclose(still.var(axis=0), spread, rtol=0.05)
