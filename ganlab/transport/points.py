"""Samples as rows of one length, and their weights."""

from __future__ import annotations

import numpy as np

from ganlab.errors import IncompatibleError


def rows(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both samples in float64, each example as one vector: `(n, values)` and `(m, values)`.

    Raises:
        IncompatibleError: The examples of the two have different numbers of values, or there are none.
    """
    x, y = (np.asarray(points, np.float64) for points in (x, y))
    if not (len(x) and len(y)):
        raise IncompatibleError(f"Samples of {len(x)} and {len(y)} points have no distance; give at least one each.")
    x, y = x.reshape(len(x), -1), y.reshape(len(y), -1)
    if x.shape[1] != y.shape[1]:
        raise IncompatibleError(
            f"Points of {x.shape[1]} and of {y.shape[1]} values lie in different spaces; they must be of one length."
        )
    return x, y


def probabilities(
    x: np.ndarray, y: np.ndarray, weights: tuple[np.ndarray, np.ndarray] | None
) -> tuple[np.ndarray, np.ndarray]:
    """The weights of both samples' rows, which sum to one; equal ones for None."""
    if weights is None:
        return np.full(len(x), 1.0 / len(x)), np.full(len(y), 1.0 / len(y))
    a, b = (np.asarray(w, np.float64) for w in weights)
    for w, points in ((a, x), (b, y)):
        if w.shape != (len(points),) or not (w >= 0).all() or abs(w.sum() - 1.0) > 1e-6:
            raise IncompatibleError(
                f"Weights of shape {w.shape} that sum to {w.sum():.6g} for {len(points)} points; they must be one "
                "each, at least 0, and sum to 1."
            )
    return a / a.sum(), b / b.sum()
