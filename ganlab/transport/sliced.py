"""The mean distance between projections on lines."""

from __future__ import annotations

import numpy as np

from ganlab.errors import IncompatibleError
from ganlab.transport.points import rows

_PROJECTIONS_AT_ONCE = 64


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
    x, y = rows(x, y)
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
