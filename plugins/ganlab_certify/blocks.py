"""The semidefinite bound of large networks, by sparse matrices and multipliers that all cells share.

The bound of `semidefinite`, carried from the input to the score along branches: of a difference of two inputs that is
no longer than one, the vectors that later layers need are `T c + N d`, with sparse matrices T and N, an unknown c with
`c' K^-1 c + d' Q^-1 d <= 1`, and a diagonal matrix Q. Linear layers multiply T and N. An activation of `W x`, with
slopes `centre +- radius`, takes weights q for which `diag(q) - W Y W'` is positive definite, `Y = T K T' + N Q N'`:

    K_next = Y + Y W' (diag(q) - W Y W')^-1 W Y,  T_next = [1; centre W],  N_next = [0; radius],  Q_next = diag(q).

So matrices are as large as what passes between two layers and not as what is between the two layers of a block
(compare ECLipsE, Xu and Sivaranjani, "ECLipsE: efficient compositional Lipschitz constant estimation for deep neural
networks", 2024, which cuts the same program into layers of chains). Convolutions are taken with their borders.
"""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_solve, cholesky, solve_triangular

from ganlab_certify.chains import UnsuitableError
from ganlab_certify.networks import Network
from ganlab_certify.semidefinite import FARTHEST, MARGIN, POSITIVE, descended

# Numbers along a side of a dense matrix, and the columns of one that a sparse matrix multiplies at once.
_WIDEST, _COLUMNS = 6144, 256
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class _Inner:
    """`K = squared + seen' (factor factor')^-1 seen`, not multiplied out."""

    squared: np.ndarray
    seen: Any
    factor: np.ndarray

    def between(self, left: Any) -> np.ndarray:
        """`left K left'` for a sparse matrix."""
        seen = np.ascontiguousarray(_times(left, self.seen.T).T)
        half = solve_triangular(self.factor, seen, lower=True, check_finite=False)
        return _times(left, _times(left, self.squared).T) + half.T @ half

    def times(self, vector: np.ndarray) -> np.ndarray:
        """`K vector`."""
        solved = cho_solve((self.factor, True), self.seen @ vector, check_finite=False)
        return self.squared @ vector + self.seen.T @ solved


@dataclass(frozen=True)
class _Passed:
    """An activation on the way, and what the gradient by its weights needs."""

    node: int
    inputs: Any  # W, over the vectors alive before
    map: Any  # T of the activation before
    noise: Any  # N of the activation before
    weights: np.ndarray
    inner: _Inner  # K


def blockwise_bounds(network: Network, *, seconds: float = 60.0, start: np.ndarray | None = None) -> list[float]:
    """Upper bounds of a network's Lipschitz constant, one for each label, or one for all if they are equal.

    Args:
        network: The network.
        seconds: When to stop; the bounds are sound whenever that is. The first take as long as they take.
        start: The logarithms of the weights to start with; None for those that bound each layer by its norm.

    Raises:
        UnsuitableError: What passes between two layers is too large, or an activation sorts.
    """
    began = time.monotonic()
    logs, best, first = _evaluated(network, start)
    taken = time.monotonic() - began

    def function(there: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best
        if there is logs:
            return math.log(best.max()), first
        if time.monotonic() + 1.1 * taken > began + seconds:
            raise StopIteration
        _, found, gradient = _evaluated(network, there)
        best = found if found.max() < best.max() else best
        return math.log(found.max()), gradient

    with contextlib.suppress(StopIteration):
        descended(function, logs, began + seconds, _TOLERANCE)
    return [float(bound) * (1 + MARGIN) for bound in best]


def _evaluated(network: Network, logs: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, the bounds with them, and the gradient of the logarithm of the largest; infinity if they are too small.

    Without weights it chooses those with which each layer alone is bounded by its norm.
    """
    if logs is not None and np.abs(logs).max(initial=0.0) > FARTHEST:
        return logs, np.full(1, math.inf), np.zeros(len(logs))
    chosen, at, passed, live = [], 0, list[_Passed](), [0]
    map_, noise = sparse.identity(network.sizes[0], format="csr"), sparse.csr_matrix((network.sizes[0], 0))
    inner: _Inner | None = None
    weights = np.zeros(0)
    sizes = network.sizes
    order = order_of(network)
    for place, number in enumerate(order):
        node = network.nodes[number]
        rows = _over(node.before.of, live, sizes)
        kept, keep = network.kept(live, order[place + 1 :])
        keep = sparse.identity(len(keep), format="csr")[keep]
        if node.stage is None:
            both = sparse.vstack([keep, rows], format="csr")
            map_, noise, live = both @ map_, both @ noise, [*kept, number + 1]
            continue
        if node.stage.group > 1:
            raise UnsuitableError("an activation sorts")
        squared = _dense(map_, inner, noise, weights)
        groups = network.groups(number)
        count = int(groups.max()) + 1
        own, q, next_inner = _conditioned(squared, rows, groups, None if logs is None else logs[at : at + count])
        chosen.append(own)
        at += count
        if next_inner is None:
            return np.asarray(logs), np.full(1, math.inf), np.zeros(len(np.asarray(logs)))
        passed.append(_Passed(number, rows, map_, noise, q, next_inner))
        centre, radius = node.stage.centre, node.stage.radius
        map_ = sparse.vstack([keep, sparse.diags_array(centre) @ rows], format="csr")
        zeros = sparse.csr_matrix((keep.shape[0], len(q)))
        noise = sparse.vstack([zeros, sparse.diags_array(radius)], format="csr")
        inner, weights, live = next_inner, q, [*kept, number + 1]
    score = _over(network.score.of, live, sizes)
    squares = np.maximum(_dense(score @ map_, inner, score @ noise, weights).diagonal(), np.finfo(float).tiny)
    worst = int(squares.argmax())
    gradient = _gradient(network, passed, map_, noise, score[[worst]].toarray()[0])
    return np.concatenate(chosen), np.sqrt(squares), gradient / (2 * squares[worst])


def _gradient(network: Network, passed: list[_Passed], map_: Any, noise: Any, row: np.ndarray) -> np.ndarray:
    """The gradient of a squared bound by the logarithms of the weights; `row` is the score over the last vectors."""
    parts = []
    for step in passed[::-1]:
        along = map_.T @ row
        pulled = (step.inputs @ step.inner.times(along)) / step.weights
        by_weight = ((noise.T @ row) ** 2 - pulled**2) * step.weights
        parts.append(np.bincount(network.groups(step.node), by_weight))
        row = along + step.inputs.T @ pulled
        map_, noise = step.map, step.noise
    return np.concatenate(parts[::-1])


def _conditioned(
    squared: np.ndarray, rows: Any, groups: np.ndarray, logs: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, _Inner | None]:
    """Weights by group and by unit, and the next K; None for K if the weights are too small."""
    if rows.shape[0] > squared.shape[0]:
        # K is root (1 - G)^-1 root' with G = root' W' diag(q)^-1 W root, and 1 + G (1 - G)^-1 = (1 - G)^-1.
        root = np.linalg.cholesky(squared + 1e-12 * float(np.trace(squared)) * np.eye(len(squared)))
        if logs is None:
            logs = np.full(int(groups.max()) + 1, math.log(2.0 * _norm(root.T @ (rows.T @ rows @ root))))
        q = np.exp(logs)[groups]
        gram = root.T @ (rows.T @ sparse.diags_array(1 / q) @ rows @ root)
        squared, seen, negative = np.zeros_like(squared), root.T, (gram + gram.T) / 2
        np.fill_diagonal(negative, negative.diagonal() - (1 - POSITIVE))
    else:
        seen = _times(rows, squared)
        negative = _times(rows, seen.T)
        negative = (negative + negative.T) / 2
        if logs is None:
            logs = np.full(int(groups.max()) + 1, math.log(2.0 * _norm(negative)))
        q = np.exp(logs)[groups]
        np.fill_diagonal(negative, negative.diagonal() - (1 - POSITIVE) * q)
    try:
        return logs, q, _Inner(squared, seen, cholesky(-negative, lower=True, overwrite_a=True, check_finite=False))
    except np.linalg.LinAlgError:
        return logs, q, None


def _times(matrix: Any, dense: np.ndarray) -> np.ndarray:
    """A sparse matrix times a dense one, by columns that fit a processor's cache."""
    product = np.empty((matrix.shape[0], dense.shape[1]))
    for at in range(0, dense.shape[1], _COLUMNS):
        product[:, at : at + _COLUMNS] = matrix @ np.ascontiguousarray(dense[:, at : at + _COLUMNS])
    return product


def _norm(matrix: np.ndarray) -> float:
    """The largest eigenvalue of a positive matrix, nearly: it only starts a search."""
    vector, length = np.random.default_rng(0).standard_normal(len(matrix)), 1.0
    for _ in range(30):
        vector = matrix @ (vector / max(float(np.linalg.norm(vector)), np.finfo(float).tiny))
        length = float(np.linalg.norm(vector))
    return max(1.05 * length, np.finfo(float).tiny)


def _dense(map_: Any, inner: _Inner | None, noise: Any, weights: np.ndarray) -> np.ndarray:
    """`T K T' + N Q N'`; K is the identity at first."""
    if map_.shape[0] > _WIDEST:
        raise UnsuitableError(f"{map_.shape[0]:,} numbers pass between two layers, more than {_WIDEST:,}")
    squared = (map_ @ map_.T).toarray() if inner is None else inner.between(map_)
    if noise.shape[1]:
        squared += (noise @ sparse.diags_array(weights) @ noise.T).toarray()
    return (squared + squared.T) / 2


def order_of(network: Network) -> list[int]:
    """The nodes of a network, each linear one that is shorter than what it is made of as early as possible."""
    sizes = network.sizes
    left, order, known = list(range(len(network.nodes))), [], {0}
    while left:
        ready = [n for n in left if known.issuperset(network.nodes[n].before.of)]
        short = [
            n
            for n in ready
            if network.nodes[n].stage is None and any(sizes[n + 1] < sizes[at] for at in network.nodes[n].before.of)
        ]
        order.append((short or ready)[0])
        known.add(order[-1] + 1)
        left.remove(order[-1])
    return order


def _over(of: Any, live: list[int], sizes: list[int]) -> Any:
    """Blocks as one sparse matrix over the live vectors."""
    height = next(iter(of.values())).shape[0]
    blocks = [of[at] if at in of else sparse.csr_matrix((height, sizes[at])) for at in live]
    return sparse.hstack(blocks, format="csr")
