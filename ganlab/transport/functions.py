"""Functions that are 1-Lipschitz by construction, fitted to tell two samples apart."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ganlab.errors import MissingDependencyError
from ganlab.transport.exact import dual_potentials

Function = Callable[[np.ndarray], np.ndarray]

_PIECE = 1024  # points at once, against every centre


def fitted(real: np.ndarray, fake: np.ndarray) -> dict[str, Function]:
    """Functions by what they are called: large where real examples lie, 1-Lipschitz wherever they are evaluated.

    Args:
        real: `(n, d)`.
        fake: `(m, d)`.

    Returns:
        `direction`, the projection on the difference of the means; and if POT is installed the two extensions of
        Kantorovich's dual solution from the samples to all points, `cones at examples` and `cones at samples` (McShane,
        "Extension of range of functions", 1934): the upper envelope of cones falling from the one, the lower envelope
        of cones rising from the other.
    """
    functions: dict[str, Function] = {"direction": _direction(real, fake)}
    try:
        u, v = dual_potentials(real, fake)
    except MissingDependencyError:
        return functions
    functions["cones at examples"] = lambda x: -_lower_envelope(x, real, -u)
    functions["cones at samples"] = lambda x: _lower_envelope(x, fake, -v)
    return functions


def _direction(real: np.ndarray, fake: np.ndarray) -> Function:
    apart = real.mean(axis=0) - fake.mean(axis=0)
    length = np.linalg.norm(apart)
    unit = apart / length if length > 0 else apart
    return lambda x: x @ unit


def _lower_envelope(x: np.ndarray, centers: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """`min_j |x - c_j| + h_j`, `(n,)`."""
    from scipy.spatial.distance import cdist

    pieces = [x[i : i + _PIECE] for i in range(0, len(x), _PIECE)]
    return np.concatenate([(cdist(piece, centers) + heights).min(axis=1) for piece in pieces])
