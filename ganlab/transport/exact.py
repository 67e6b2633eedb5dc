"""The exact distance between two samples."""

from __future__ import annotations

import os
import types
from typing import Literal

import numpy as np

from ganlab.errors import ConfigError, IncompatibleError, MissingDependencyError
from ganlab.lazy import require
from ganlab.transport.points import probabilities, rows

# Pivots of the network simplex: 2,000 points against 2,000 took under 10**5, and stopping early is an error.
_PIVOTS = 10**8


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
        MissingDependencyError: The method needs POT, which is not installed (`pip install -e '.[eval]'`).
        ConfigError: The method is unknown, or does not apply.
    """
    from scipy.spatial.distance import cdist

    x, y = rows(x, y)
    if method not in ("auto", "network_simplex", "assignment"):
        raise ConfigError(f"method = {method!r} must be 'auto', 'network_simplex' or 'assignment'.")
    a, b = probabilities(x, y, weights)
    assignable = weights is None and len(x) == len(y)
    if method == "assignment" and not assignable:
        raise ConfigError("method = 'assignment' is for equally many points of equal weight. Use 'auto'.")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return float("nan")
    cost = cdist(x, y)
    if method != "assignment":
        try:
            return float(_solved(a, b, cost)[0])
        except MissingDependencyError:
            if not assignable or method == "network_simplex":
                raise
    from scipy.optimize import linear_sum_assignment

    return float(cost[linear_sum_assignment(cost)].mean())


def dual_potentials(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers u, `(n,)`, and v, `(m,)`, with `u_i + v_j <= ||x_i - y_j||` and `mean(u) + mean(v)` the exact distance.

    They solve Kantorovich's dual problem between samples of equal weights, rows of finite numbers.

    Raises:
        MissingDependencyError: POT is not installed.
    """
    from scipy.spatial.distance import cdist

    _, log = _solved(*probabilities(x, y, None), cdist(x, y))
    return log["u"], log["v"]


def pot() -> types.ModuleType:
    """POT, without the array libraries that it would import beside numpy.

    Raises:
        MissingDependencyError: It is not installed.
    """
    for library in ("TENSORFLOW", "PYTORCH", "JAX", "CUPY"):
        os.environ.setdefault(f"POT_BACKEND_DISABLE_{library}", "1")
    return require("ot")


def _solved(a: np.ndarray, b: np.ndarray, cost: np.ndarray) -> tuple[float, dict[str, np.ndarray]]:
    value, log = pot().emd2(a, b, cost, numItermax=_PIVOTS, log=True)
    if log.get("warning"):
        raise IncompatibleError(f"Optimal transport between {len(a)} and {len(b)} points failed: {log['warning']}.")
    return value, log
