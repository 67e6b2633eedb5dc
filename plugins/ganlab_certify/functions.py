"""Functions that are 1-Lipschitz by construction, fitted to tell two samples apart."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ganlab.errors import MissingDependencyError
from ganlab.transport import dual_potentials

Function = Callable[[np.ndarray], np.ndarray]

_PIECE = 1024  # points at once, against every centre

# Points that potentials are solved for: optimal transport between them takes seconds.
_SOLVED = 2048
# Learned cones: how many; the points of an update; how many updates, and how many coordinate differences they may all
# take, so that large images take no minutes.
_CONES, _BATCH, _UPDATES, _DIFFERENCES = (64, 256), 512, 400, 10**10


def fitted(real: np.ndarray, fake: np.ndarray) -> dict[str, Function]:
    """Functions by what they are called: large where real examples lie, 1-Lipschitz wherever they are evaluated.

    Args:
        real: `(n, d)`.
        fake: `(m, d)`.

    Returns:
        `direction`, the projection on the difference of the means; and if POT is installed the two extensions of
        Kantorovich's dual solution from the samples to all points, `cones at examples` and `cones at samples` (McShane,
        "Extension of range of functions", 1934): the upper envelope of cones falling from the one, the lower envelope
        of cones rising from the other. `64 cones` and `256 cones` are upper envelopes too, whose tips are learned.
    """
    functions: dict[str, Function] = {"direction": _direction(real, fake)}
    functions |= {f"{count} cones": _learned(real, fake, count) for count in _CONES if count < len(real)}
    real, fake = _spread(real), _spread(fake)
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


def _learned(real: np.ndarray, fake: np.ndarray, count: int) -> Function:
    """`max_j h_j - |x - c_j|` with tips that climb the mean difference of scores by Adam's steps, ever shorter ones."""
    from scipy.spatial.distance import cdist

    random = np.random.default_rng(0)
    centers, heights = real[random.choice(len(real), count, replace=False)], np.zeros(count)
    updates = max(1, min(_UPDATES, _DIFFERENCES // (2 * _BATCH * count * real.shape[1])))
    step = 0.05 * float(np.abs(real - real.mean(axis=0)).mean())
    climbed = [_Adam(centers), _Adam(heights)]
    for update in range(updates):
        gradients = np.zeros_like(centers), np.zeros(count)
        for points, sign in ((real, 1.0), (fake, -1.0)):
            x = points[random.integers(len(points), size=_BATCH)]
            apart = cdist(x, centers)
            top = (heights - apart).argmax(axis=1)
            ways = apart[np.arange(_BATCH), top][:, None]
            towards = np.divide(x - centers[top], ways, out=np.zeros_like(x), where=ways > 0)
            np.add.at(gradients[0], top, sign * towards / _BATCH)
            np.add.at(gradients[1], top, sign / _BATCH)
        length = step * 0.5 * (1.0 + math.cos(math.pi * update / updates))
        for values, adam, gradient in zip((centers, heights), climbed, gradients, strict=True):
            values += length * adam.direction(gradient)
    return lambda x: -_lower_envelope(x, centers, -heights)


class _Adam:
    """Directions of Kingma and Ba, "Adam" (2015), algorithm 1."""

    def __init__(self, like: np.ndarray) -> None:
        self._first, self._second, self._time = np.zeros_like(like), np.zeros_like(like), 0

    def direction(self, gradient: np.ndarray) -> np.ndarray:
        self._time += 1
        self._first += 0.1 * (gradient - self._first)
        self._second += 0.01 * (gradient**2 - self._second)
        first = self._first / (1.0 - 0.9**self._time)
        return first / (np.sqrt(self._second / (1.0 - 0.99**self._time)) + 1e-12)


def _spread(x: np.ndarray) -> np.ndarray:
    """At most as many rows as potentials are solved for, from all parts: complete sets may be in order."""
    return x[np.linspace(0, len(x) - 1, min(_SOLVED, len(x))).astype(int)]
