"""The semidefinite bound of convolutional networks, frequency by frequency.

The bound of `blocks`, of the same network on a torus. Convolutions with zeros at the border are those of a torus that
is larger by their reach, between vectors that are zero outside the image; and where an activation may have any slope
between 0 and some other, it may have the slope 0 there. So the torus has at least the network's constant. There, with
the same weights in every cell, all matrices are the same at every cell, and a Fourier transform makes of each a small
one for each frequency. A cell is one pixel of the smallest image and what lies over it in larger ones.
"""

from __future__ import annotations

import itertools
import math
import time
from typing import Any

import numpy as np
from scipy import sparse

from ganlab_certify.blocks import order_of
from ganlab_certify.chains import UnsuitableError
from ganlab_certify.networks import Network
from ganlab_certify.semidefinite import Program, Step

# As in `semidefinite`, but few steps for each barrier, and a stronger one at first: a step takes half a second.
_BARRIERS, _TOLERANCE = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03), 1e-2
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
    end = time.monotonic() + seconds
    chosen, bounds = waves_of(network).lowered(end, _BARRIERS, _TOLERANCE)
    return chosen, bounds.tolist()


def waves_of(network: Network) -> Program:
    """The program of a network on the torus, with a weight for each number of a cell."""
    nodes, shapes, grid = network.nodes, [network.shape, *(node.shape for node in network.nodes)], network.grid
    if grid is None:
        raise UnsuitableError("a layer before the score has no pixels, or sides that are no multiples of the others'")
    if all(node.stage is None for node in nodes) or any(node.stage and node.stage.group > 1 for node in nodes):
        raise UnsuitableError("there is no activation, or one sorts")
    sizes, places = [math.prod(shape) // math.prod(grid) for shape in shapes], [_cells(shape, grid) for shape in shapes]
    kernels = [
        {at: _kernel(matrix, places[number + 1], places[at], grid) for at, matrix in node.before.of.items()}
        for number, node in enumerate(nodes)
    ]
    for node in kernels:
        for at, kernel in node.items():
            # Only an activation, by its slope 0, keeps what is computed outside the image from coming back.
            if at and nodes[at - 1].stage is None and set(kernel) - {(0, 0)}:
                raise UnsuitableError("a convolution follows a sum without an activation between")
    shifts = [(0, 0), *(shift for node in kernels for kernel in node.values() for shift in kernel)]
    sides = [int(side) for side in grid + np.abs(shifts).max(axis=0)]
    across = np.fft.rfftfreq(sides[1])
    frequencies = np.stack(np.meshgrid(np.fft.fftfreq(sides[0]), across, indexing="ij"), axis=-1).reshape(-1, 2)
    if len(frequencies) * max(sizes) ** 2 > _LARGEST:
        raise UnsuitableError(f"its cells have {max(sizes):,} numbers at {len(frequencies):,} frequencies")

    def over(of: dict[int, np.ndarray], height: int) -> np.ndarray:
        """Blocks as one matrix over the live vectors at each frequency."""
        empty = len(frequencies), height
        return np.concatenate([of.get(at, np.zeros((*empty, sizes[at]))) for at in live], axis=2)

    live, steps, order = [0], list[Step](), order_of(network)
    for place, number in enumerate(order):
        turned = {
            at: sum(np.exp(2j * np.pi * frequencies @ shift)[:, None, None] * part for shift, part in kernel.items())
            for at, kernel in kernels[number].items()
        }
        rows, stage, units = over(turned, sizes[number + 1]), nodes[number].stage, sizes[number + 1]
        kept, keep = network.kept(live, order[place + 1 :], sizes)
        live = [*kept, number + 1]
        # Outside the image the slope is 0.
        lower, upper = (1.0, 1.0) if stage is None else (min(0.0, stage.lower.min()), max(0.0, stage.upper.max()))
        groups = np.arange(units if upper > lower else 0)
        slopes = np.full(units, (lower + upper) / 2), np.full(units, (upper - lower) / 2)
        steps.append(Step(rows, keep, *slopes, groups))
    score = dict[int, np.ndarray]()
    for at, matrix in network.score.of.items():
        image = np.zeros((matrix.shape[0], *sides, sizes[at]))
        image[:, : grid[0], : grid[1]] = matrix.toarray()[:, places[at]]
        waves = np.fft.rfft2(image, axes=(1, 2)).conj().reshape(len(image), -1, sizes[at])
        score[at] = waves.transpose(1, 0, 2)
    # Those left out are the conjugates of others.
    shares = np.where((across == 0) | (across == 0.5), 1.0, 2.0)[None].repeat(sides[0], 0).ravel() / math.prod(sides)
    return Program(steps, over(score, next(iter(score.values())).shape[1]), shares)


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
