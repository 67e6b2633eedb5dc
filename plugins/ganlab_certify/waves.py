"""The semidefinite bound of convolutional networks, frequency by frequency.

The bound of `blocks`, of the same network on a torus. Convolutions with zeros at the border are those of a torus that
is larger by their reach, between vectors that are zero outside the image; and where an activation may have any slope
between 0 and some other, it may have the slope 0 there. So the torus has at least the network's constant. There, with
one weight for each channel, all matrices are the same at every place, and a Fourier transform makes of each a small one
for each frequency. A place is a cell of pixels, one pixel of the smallest image and what lies over it in larger ones.

Of a difference of inputs no longer than one, the vectors that later layers need are `T c + N d`, as in `blocks`. With
Y = T K T' + N Q N' and G = W' diag(q)^-1 W, an activation of `W x` with weights q takes

    K_next = (1 - Y G)^-1 Y,  T_next = [1; centre W],  N_next = [0; radius],  Q_next = diag(q),

where 1 - Y G must have positive eigenvalues; `-log det(1 - Y G)` is the barrier of `semidefinite`.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ganlab_certify.blocks import order_of
from ganlab_certify.chains import UnsuitableError
from ganlab_certify.networks import Network
from ganlab_certify.semidefinite import MARGIN, POSITIVE, descended

# As in `semidefinite`, but few steps for each barrier, and a stronger one at first: a step takes half a second.
_BARRIERS, _TOLERANCE = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03), 1e-3
# Of the norm that stands for the largest of the labels.
_POWER = 32
# Numbers of the matrices of one layer, all frequencies together.
_LARGEST = 2**23


def frequency_bounds(network: Network, *, seconds: float = 60.0) -> tuple[np.ndarray, list[float]]:
    """Upper bounds of a network's Lipschitz constant, one for each label, or one for all if they are equal.

    The logarithms of the weights that they have come first: `blocks` has a lower bound with these.

    Args:
        network: The network.
        seconds: When to stop; the bounds are sound whenever that is. The first take as long as they take.

    Raises:
        UnsuitableError: A layer before the score is no convolution, an activation sorts or has no slope 0, or matrices
            would be too large.
    """
    end, waves = time.monotonic() + seconds, Waves(network)
    logs, best, _, _ = waves.evaluated(None)
    chosen = logs

    def function(there: np.ndarray, barrier: float) -> tuple[float, np.ndarray]:
        nonlocal best, chosen
        if time.monotonic() > end:
            raise StopIteration
        _, found, value, gradient = waves.evaluated(there, barrier)
        if found.max() < best.max():
            best, chosen = found, there.copy()
        return value, gradient

    for weight in _BARRIERS:
        with contextlib.suppress(StopIteration):
            logs = descended(functools.partial(function, barrier=weight / waves.units), logs, end, _TOLERANCE)
    return chosen, [float(bound) * (1 + MARGIN) for bound in best]


class Waves:
    """A network's matrices at each frequency."""

    def __init__(self, network: Network) -> None:
        shapes = [network.shape, *(node.shape for node in network.nodes)]
        if any(len(shape) != 3 for shape in shapes) or all(node.stage is None for node in network.nodes):
            raise UnsuitableError("a layer before the score has no pixels, or there is no activation")
        grid = tuple(min(shape[axis] for shape in shapes) for axis in (0, 1))
        if any(shape[axis] % grid[axis] for shape in shapes for axis in (0, 1)):
            raise UnsuitableError("the sides of its images are not multiples of one another")
        self.network, self.order = network, order_of(network)
        self.sizes = [math.prod(shape) // math.prod(grid) for shape in shapes]
        places = [_cells(shape, grid) for shape in shapes]
        kernels = [
            {at: _kernel(matrix, places[number + 1], places[at], grid) for at, matrix in node.before.of.items()}
            for number, node in enumerate(network.nodes)
        ]
        for node in kernels:
            for at, kernel in node.items():
                # Only an activation, by its slope 0, keeps what is computed outside the image from coming back.
                if at and network.nodes[at - 1].stage is None and set(kernel) - {(0, 0)}:
                    raise UnsuitableError("a convolution follows a sum without an activation between")
        shifts = [(0, 0), *(shift for node in kernels for kernel in node.values() for shift in kernel)]
        reach = np.abs(shifts).max(axis=0)
        sides = [int(side) for side in grid + reach]
        across = np.fft.rfftfreq(sides[1])
        frequencies = np.stack(np.meshgrid(np.fft.fftfreq(sides[0]), across, indexing="ij"), axis=-1).reshape(-1, 2)
        if len(frequencies) * max(self.sizes) ** 2 > _LARGEST:
            raise UnsuitableError(f"its cells have {max(self.sizes):,} numbers at {len(frequencies):,} frequencies")
        # Those left out are the conjugates of others.
        self.shares = np.where((across == 0) | (across == 0.5), 1.0, 2.0)[None].repeat(sides[0], 0).ravel()
        self.shares /= math.prod(sides)
        self.matrices = [
            {
                at: sum(
                    np.exp(2j * np.pi * frequencies @ shift)[:, None, None] * part for shift, part in kernel.items()
                )
                for at, kernel in node.items()
            }
            for node in kernels
        ]
        self.score = dict[int, np.ndarray]()
        for at, matrix in network.score.of.items():
            rows = np.zeros((matrix.shape[0], *sides, self.sizes[at]))
            rows[:, : grid[0], : grid[1]] = matrix.toarray()[:, places[at]]
            self.score[at] = np.fft.rfft2(rows, axes=(1, 2)).conj().reshape(len(rows), -1, self.sizes[at])
        self.units = sum(self.sizes[i + 1] for i, node in enumerate(network.nodes) if node.stage is not None)

    def evaluated(
        self, logs: np.ndarray | None, barrier: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
        """Weights, bounds for each label, nearly the logarithm of the largest with the barrier, and its gradient.

        The bounds are infinite if the weights are too small. Without weights it chooses those with which each layer
        alone is bounded by its norm.
        """
        nodes, live, passed, chosen, at = self.network.nodes, [0], list[_Passed](), list[np.ndarray](), 0
        map_ = inner = np.broadcast_to(np.eye(self.sizes[0]), (len(self.shares), self.sizes[0], self.sizes[0]))
        noise, q, walls = map_[:, :, :0], np.zeros(0), 0.0
        for place, number in enumerate(self.order):
            stage, channels = nodes[number].stage, nodes[number].shape[2]
            rows = self._over(self.matrices[number], live, self.sizes[number + 1])
            needed = set(self.network.score.of).union(*(nodes[later].before.of for later in self.order[place + 1 :]))
            keep = np.concatenate([np.full(self.sizes[vector], vector in needed) for vector in live])
            picked = np.broadcast_to(np.eye(len(keep))[keep], (len(rows), int(keep.sum()), len(keep)))
            live = [*(vector for vector in live if vector in needed), number + 1]
            if stage is None:
                both = np.concatenate([picked, rows], axis=1)
                map_, noise = both @ map_, both @ noise
                continue
            if stage.group > 1:
                raise UnsuitableError("an activation sorts")
            squared, eye = map_ @ inner @ _turned(map_) + (noise * q) @ _turned(noise), np.eye(map_.shape[1])
            root = np.linalg.cholesky(squared + 1e-12 * np.trace(squared, axis1=1, axis2=2).real[:, None, None] * eye)
            seen = rows @ root
            if logs is None:
                norm = max(float(np.linalg.eigvalsh(_turned(seen) @ seen).max()), np.finfo(float).tiny)
                chosen.append(np.full(channels, math.log(2.0 * norm)))
            own = chosen[-1] if logs is None else logs[at : at + channels]
            at += channels
            weights = np.exp(np.tile(own, len(seen[0]) // channels))
            try:
                factor = np.linalg.cholesky((1 - POSITIVE) * eye - _turned(seen) @ (seen / weights[:, None]))
            except np.linalg.LinAlgError:
                return own, np.full(1, math.inf), math.inf, np.zeros(0 if logs is None else len(logs))
            walls -= float(self.shares @ np.log(np.diagonal(factor, axis1=1, axis2=2).real).sum(axis=1)) * 2
            half = np.linalg.solve(factor, _turned(root))
            passed.append(_Passed(number, rows, map_, noise, weights, inner := _turned(half) @ half))
            # Outside the image the slope is 0.
            lower, upper = min(0.0, float(stage.lower.min())), max(0.0, float(stage.upper.max()))
            map_ = np.concatenate([picked, (lower + upper) / 2 * rows], axis=1)
            spread = np.concatenate(
                [np.zeros((picked.shape[1], len(weights))), (upper - lower) / 2 * np.eye(len(weights))]
            )
            noise, q = np.broadcast_to(spread, (len(rows), *spread.shape)), weights
        score = self._over(self.score, live, len(next(iter(self.score.values()))), by_label=True)
        along, rest = score @ map_, score @ noise
        squares = self.shares @ ((along @ inner * along.conj()).real.sum(axis=2) + (np.abs(rest) ** 2 @ q))
        # The largest of all labels, nearly: two may take turns, and their maximum has a kink there.
        largest = max(float(squares.max()), np.finfo(float).tiny)
        powers = (squares / largest) ** _POWER
        total, shares = largest * powers.sum() ** (1 / _POWER), self.shares[:, None, None]
        by_label = powers / (powers.sum() * np.maximum(squares, np.finfo(float).tiny))
        back = _turned(score) @ (by_label[:, None] * score) * shares / 2
        gradient = self._gradient(passed, map_, noise, back, barrier)
        logs = np.concatenate(chosen) if logs is None else logs
        return logs, np.sqrt(squares), math.log(total) / 2 + barrier * walls, gradient

    def _gradient(
        self, passed: list[_Passed], map_: np.ndarray, noise: np.ndarray, back: np.ndarray, barrier: float
    ) -> np.ndarray:
        """The gradient by the logarithms of weights; `back` is that by the last Y, Hermitian matrices."""
        parts, shares = [], barrier * self.shares[:, None, None]
        for step in passed[::-1]:
            by_inner, rows, q = _turned(map_) @ back @ map_, step.rows, step.weights
            across = rows @ step.inner / q[:, None]
            by_q = (noise.conj() * (back @ noise)).real.sum(axis=(0, 1))
            by_q -= (across @ by_inner * across.conj() + shares * across * rows.conj() / q[:, None]).real.sum(
                axis=(0, 2)
            )
            parts.append((by_q * q).reshape(-1, self.network.nodes[step.node].shape[2]).sum(axis=0))
            gram = _turned(rows) @ (rows / q[:, None])
            turn = np.eye(gram.shape[1]) + gram @ step.inner
            back = turn @ by_inner @ _turned(turn) + shares * (turn @ gram)
            map_, noise = step.map, step.noise
        return np.concatenate(parts[::-1])

    def _over(self, of: Any, live: list[int], height: int, *, by_label: bool = False) -> np.ndarray:
        """Blocks as one matrix over the live vectors at each frequency."""
        empty = (height, len(self.shares)) if by_label else (len(self.shares), height)
        joined = np.concatenate([of.get(at, np.zeros((*empty, self.sizes[at]))) for at in live], axis=2)
        return joined.transpose(1, 0, 2) if by_label else joined


@dataclass(frozen=True)
class _Passed:
    """An activation on the way, and what the gradient by its weights needs: at each frequency W, T, N, q and K."""

    node: int
    rows: np.ndarray
    map: np.ndarray
    noise: np.ndarray
    weights: np.ndarray
    inner: np.ndarray


def _turned(matrices: np.ndarray) -> np.ndarray:
    return matrices.conj().swapaxes(-1, -2)


def _cells(shape: tuple[int, ...], grid: tuple[int, ...]) -> np.ndarray:
    """Where the numbers of each cell are in a vector, `(rows, columns, numbers)`; its channel is the last to vary."""
    (rows, columns), (height, width, channels) = grid, shape
    places = np.arange(math.prod(shape)).reshape(rows, height // rows, columns, width // columns, channels)
    return places.transpose(0, 2, 1, 3, 4).reshape(rows, columns, -1)


def _kernel(
    matrix: Any, rows: np.ndarray, columns: np.ndarray, grid: tuple[int, ...]
) -> dict[tuple[int, ...], np.ndarray]:
    """The blocks of a convolution between cells, by how far the second cell lies from the first.

    Raises:
        UnsuitableError: The matrix is not that of a convolution with zeros at the border.
    """
    from scipy import sparse

    ordered = matrix.tocsr()[rows.ravel()][:, columns.ravel()]
    high, wide, kernel, rebuilt = rows.shape[2], columns.shape[2], {}, sparse.csr_matrix(ordered.shape)
    for shift in itertools.product(*(range(1 - side, side) for side in grid)):
        first = [max(0, -by) for by in shift]
        start, stop = (y * grid[1] + x for y, x in (first, np.add(first, shift)))
        block = ordered[start * high : (start + 1) * high, stop * wide : (stop + 1) * wide]
        if block.nnz:
            kernel[shift] = block.toarray()
            places = sparse.kron(*(sparse.eye_array(side, k=by) for side, by in zip(grid, shift, strict=True)))
            rebuilt = rebuilt + sparse.kron(places, block, format="csr")
    if abs(ordered - rebuilt).max() > 1e-12 * abs(ordered).max():
        raise UnsuitableError("a layer before the score is not a convolution")
    return kernel
