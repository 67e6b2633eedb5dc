"""Distances of optimal transport between samples: the truth that a critic's estimate is compared with.

Uses numpy and scipy in float64; no TensorFlow.
"""

from __future__ import annotations

import os
from typing import Literal

import numpy as np

from ganlab.errors import ConfigError, IncompatibleError, MissingDependencyError
from ganlab.lazy import require

# Pivots of the network simplex: 2,000 points against 2,000 took under 10**5, and stopping early is an error.
_PIVOTS = 10**8
_PROJECTIONS_AT_ONCE = 64


def exact_w1(
    x: np.ndarray,
    y: np.ndarray,
    weights: tuple[np.ndarray, np.ndarray] | None = None,
    *,
    method: Literal["auto", "network_simplex", "assignment"] = "auto",
) -> float:
    """The exact Wasserstein-1 distance between two discrete distributions under the Euclidean distance.

    `min over plans P >= 0 with P 1 = a, P' 1 = b of sum_ij P_ij ||x_i - y_j||` (Peyre and Cuturi, "Computational
    optimal transport", 2019, eq. 2.11): Kantorovich's primal problem, whose dual a critic approximates. Between samples
    it is biased upward, because two samples of one distribution are apart. Memory grows as n m, and time as about
    n^2 m: 2,000 points against 2,000 take about a second.

    Args:
        x: `(n, ...)`; every example is taken as one vector.
        y: `(m, ...)`, examples with the same number of values.
        weights: Probabilities of the rows, `(n,)` and `(m,)`; None for equal ones.
        method: "network_simplex" (POT's), "assignment" (scipy's, for equally many points of equal weight), or "auto",
            which uses POT if it is installed.

    Returns:
        The distance; NaN if a value is not finite.

    Raises:
        IncompatibleError: The rows have different lengths, or there are none; or the weights are not probabilities.
        MissingDependencyError: The method needs POT, which is not installed (`pip install 'ganlab[eval]'`).
        ConfigError: The method is unknown, or does not apply.
    """
    from scipy.spatial.distance import cdist

    x, y = _points(x, y)
    if method not in ("auto", "network_simplex", "assignment"):
        raise ConfigError(f"method = {method!r} must be 'auto', 'network_simplex' or 'assignment'.")
    a, b = _probabilities(x, y, weights)
    assignable = weights is None and len(x) == len(y)
    if method == "assignment" and not assignable:
        raise ConfigError("method = 'assignment' is for equally many points of equal weight. Use 'auto'.")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return float("nan")
    cost = cdist(x, y)
    if method != "assignment":
        try:
            return _network_simplex(a, b, cost)
        except MissingDependencyError:
            if not assignable or method == "network_simplex":
                raise
    from scipy.optimize import linear_sum_assignment

    return float(cost[linear_sum_assignment(cost)].mean())


def sliced_wasserstein(x: np.ndarray, y: np.ndarray, *, projections: int = 256, order: int = 2, seed: int = 0) -> float:
    """The sliced Wasserstein distance between two samples of one size, over random directions.

    `(mean over directions u of W_p(<x, u>, <y, u>)^p)^(1/p)`, u uniform on the unit sphere (Bonneel et al., "Sliced and
    Radon Wasserstein barycenters of measures", 2015); on a line, W_p pairs the sorted values.

    Args:
        x: `(n, ...)`; every example is taken as one vector.
        y: `(n, ...)`, examples with the same number of values.
        projections: The number of directions.
        order: p.
        seed: The seed of the directions.

    Returns:
        The distance; NaN if a value is not finite.

    Raises:
        IncompatibleError: The samples differ in size, their rows differ in length, or there are none.
    """
    x, y = _points(x, y)
    if len(x) != len(y):
        raise IncompatibleError(f"Samples of {len(x)} and {len(y)} points; slices pair them, so give equally many.")
    random = np.random.default_rng(seed)
    total = 0.0
    for start in range(0, projections, _PROJECTIONS_AT_ONCE):
        directions = random.normal(size=(x.shape[1], min(_PROJECTIONS_AT_ONCE, projections - start)))
        directions /= np.linalg.norm(directions, axis=0)
        apart = np.sort(x @ directions, axis=0) - np.sort(y @ directions, axis=0)
        total += float(np.sum(np.mean(np.abs(apart) ** order, axis=0)))
    return float((total / projections) ** (1.0 / order))


def _points(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, y = (np.asarray(points, np.float64) for points in (x, y))
    if not (len(x) and len(y)):
        raise IncompatibleError(f"Samples of {len(x)} and {len(y)} points have no distance; give at least one each.")
    x, y = x.reshape(len(x), -1), y.reshape(len(y), -1)
    if x.shape[1] != y.shape[1]:
        raise IncompatibleError(
            f"Points of {x.shape[1]} and of {y.shape[1]} values lie in different spaces; they must be of one length."
        )
    return x, y


def _probabilities(
    x: np.ndarray, y: np.ndarray, weights: tuple[np.ndarray, np.ndarray] | None
) -> tuple[np.ndarray, np.ndarray]:
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


def _network_simplex(a: np.ndarray, b: np.ndarray, cost: np.ndarray) -> float:
    # By default POT imports every array library that it finds; numpy is always used.
    for library in ("TENSORFLOW", "PYTORCH", "JAX", "CUPY"):
        os.environ.setdefault(f"POT_BACKEND_DISABLE_{library}", "1")
    value, log = require("ot").emd2(a, b, cost, numItermax=_PIVOTS, log=True)
    if log.get("warning"):
        raise IncompatibleError(f"Optimal transport between {len(a)} and {len(b)} points failed: {log['warning']}.")
    return float(value)
