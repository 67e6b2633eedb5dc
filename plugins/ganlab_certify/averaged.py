"""A bound that multiplies matrices across activations, as far as these are averages."""

from __future__ import annotations

import numpy as np

from ganlab_certify.chains import Chain


def averaged_bound(chain: Chain) -> float:
    """An upper bound of a chain's Lipschitz constant, at most that of the product of all norms.

    An activation with slopes `centre +- radius` is `centre x` and a rest no larger than `radius x`. Behind the first
    part two matrices meet, and the norm of their product counts; the rest counts with both norms. Unrolled over all
    activations, this is the bound of Combettes and Pesquet, "Lipschitz certificates for layered network structures
    driven by averaged activation operators" (2020), theorem 4.2, computed stage by stage.

    Args:
        chain: The chain.

    Returns:
        The bound.
    """
    # What reaches the stage at hand without a rest on its way: from the input, and from each stage's rest.
    paths: list[tuple[np.ndarray | None, float]] = [(None, 1.0)]
    for stage in chain.stages:
        arrived = [(_times(stage.matrix, path), size) for path, size in paths]
        reach = sum(_norm(path) * size for path, size in arrived)
        paths = [(stage.centre[:, None] * path, size) for path, size in arrived if stage.centre.any()]
        paths.append((np.diag(stage.radius), reach))
    return float(sum(_norm(_times(chain.last[None], path)) * size for path, size in paths))


def _times(matrix: np.ndarray, path: np.ndarray | None) -> np.ndarray:
    return matrix if path is None else matrix @ path


def _norm(matrix: np.ndarray) -> float:
    return float(np.linalg.norm(matrix, 2)) if matrix.size else 0.0
