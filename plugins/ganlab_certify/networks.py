"""Networks as linear maps between activations, branches and labels included, from which certificates start."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ganlab_certify.chains import Chain, Stage, UnsuitableError

# Numbers of the matrices of a chain.
_LARGEST = 2**24


@dataclass(frozen=True)
class Affine:
    """An affine function of the vectors of a network.

    Attributes:
        of: Sparse matrices by the vector that they multiply: 0 is the input, i + 1 the output of node i.
        bias: `(1, n)`, or `(classes, n)` where the label decides it.
    """

    of: Mapping[int, Any]
    bias: np.ndarray

    def times(self, matrix: Any, bias: np.ndarray | None = None) -> Affine:
        """This, then a linear map and a bias."""
        moved = (matrix @ self.bias.T).T
        return Affine({at: matrix @ each for at, each in self.of.items()}, moved if bias is None else moved + bias)

    def plus(self, other: Affine, sign: float = 1.0) -> Affine:
        """The sum of both, or the difference."""
        of = dict(self.of)
        for at, matrix in other.of.items():
            of[at] = of[at] + sign * matrix if at in of else sign * matrix
        return Affine(of, self.bias + sign * other.bias)


@dataclass(frozen=True)
class Node:
    """A vector of a network: an activation of an affine function, or that function itself.

    Attributes:
        before: The function.
        stage: The slopes of its units, with a matrix and a bias that count for nothing; None for none.
        shape: The tensor's, of one example; the last side is channels.
    """

    before: Affine
    stage: Stage | None
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Network:
    """A critic for every label.

    Attributes:
        shape: That of an example.
        nodes: Vectors in an order in which each needs earlier ones alone.
        score: The score, `(1, n)` matrices; or `(classes, n)` ones, a row for each label.
        classes: The number of labels, 1 without.
    """

    shape: tuple[int, ...]
    nodes: tuple[Node, ...]
    score: Affine
    classes: int

    @property
    def sizes(self) -> list[int]:
        """The length of each vector, the input first."""
        return [math.prod(self.shape), *(math.prod(node.shape) for node in self.nodes)]

    @property
    def grid(self) -> tuple[int, ...] | None:
        """How many cells images have along each side: pixels of the smallest image, and what lies over them in others.

        None if a vector is no image, or its sides are not multiples of those.
        """
        shapes = [self.shape, *(node.shape for node in self.nodes)]
        if any(len(shape) != 3 for shape in shapes):
            return None
        grid = tuple(min(shape[axis] for shape in shapes) for axis in (0, 1))
        return grid if not any(shape[axis] % grid[axis] for shape in shapes for axis in (0, 1)) else None

    def groups(self, number: int) -> np.ndarray:
        """Which units of a node share a weight: those of one channel, at one place of a cell if there are cells."""
        shape, grid = self.nodes[number].shape, self.grid
        if grid is None:
            return np.tile(np.arange(shape[-1]), math.prod(shape[:-1]))
        high, wide = shape[0] // grid[0], shape[1] // grid[1]
        within = np.arange(high * wide * shape[2]).reshape(high, wide, shape[2])
        return np.tile(within, (*grid, 1)).ravel()

    def kept(
        self, live: Sequence[int], later: Sequence[int], sizes: Sequence[int] | None = None
    ) -> tuple[list[int], np.ndarray]:
        """Which of some vectors later nodes or the score need, and whether each of their numbers is of one of these."""
        needed = set(self.score.of).union(*(self.nodes[number].before.of for number in later))
        lengths = [(sizes or self.sizes)[at] for at in live]
        return [at for at in live if at in needed], np.repeat([at in needed for at in live], lengths)

    def chains(self) -> list[Chain]:
        """The network as a chain for each label, in which branches pass beside activations; one if they are equal.

        Raises:
            UnsuitableError: Matrices would be too large to write out, or a branch passes beside a sorting activation.
        """
        plain = self._without_linear_nodes()
        different = self.score.bias.shape[0] > 1 or any(len(node.before.bias) > 1 for node in plain.nodes)
        return [plain._chain(label) for label in range(self.classes if different else 1)]

    def _without_linear_nodes(self) -> Network:
        size = math.prod(self.shape)
        meaning: dict[int, Affine] = {0: Affine({0: _identity(size)}, np.zeros((1, size)))}
        nodes: list[Node] = []

        def resolved(affine: Affine) -> Affine:
            total = Affine({}, affine.bias)
            for at, matrix in affine.of.items():
                total = total.plus(meaning[at].times(matrix))
            return total

        for number, node in enumerate(self.nodes):
            before = resolved(node.before)
            if node.stage is None:
                meaning[number + 1] = before
            else:
                nodes.append(replace(node, before=before))
                units = before.bias.shape[1]
                meaning[number + 1] = Affine({len(nodes): _identity(units)}, np.zeros((1, units)))
        return Network(self.shape, tuple(nodes), resolved(self.score), self.classes)

    def _chain(self, label: int) -> Chain:
        sizes, stages, live = self.sizes, [], [0]
        for number, node in enumerate(self.nodes):
            passed, _ = self.kept(live, range(number + 1, len(self.nodes)))
            rows = [node.before.of, *({at: _identity(sizes[at])} for at in passed)]
            counts = sizes[number + 1], sum(sizes[at] for at in passed)
            if sum(counts) * sum(sizes[at] for at in live) > _LARGEST:
                raise UnsuitableError(f"its matrix of {sum(counts):,} rows is too large to write out")
            matrix = _written(rows, live, sizes)
            assert node.stage is not None
            bias = np.concatenate([_of(node.before.bias, label), np.zeros(counts[1])])
            stages.append(_beside(node.stage, matrix, bias, counts[1]))
            live = [number + 1, *passed]
        row = _of(_written([self.score.of], live, sizes), label)
        return Chain(tuple(stages), row, float(_of(self.score.bias, label)[0]))


def _of(rows: np.ndarray, label: int) -> np.ndarray:
    return rows[label % len(rows)]


def _identity(size: int) -> Any:
    return sparse.identity(size, format="csr")


def _written(rows: list[Mapping[int, Any]], live: list[int], sizes: Sequence[int]) -> np.ndarray:
    """Blocks of rows as one matrix over the live vectors."""
    starts = dict(zip(live, np.cumsum([0, *(sizes[at] for at in live)]), strict=False))
    blocks = []
    for of in rows:
        block = np.zeros((next(iter(of.values())).shape[0], sum(sizes[at] for at in live)))
        for at, matrix in of.items():
            block[:, starts[at] : starts[at] + sizes[at]] = matrix.toarray()
        blocks.append(block)
    return np.concatenate(blocks)


def _beside(stage: Stage, matrix: np.ndarray, bias: np.ndarray, passed: int) -> Stage:
    """A stage whose last units are the identity: rectifiers with the slope one on both sides."""
    if not passed:
        return replace(stage, matrix=matrix, bias=bias)
    if stage.group > 1:
        raise UnsuitableError("a branch passes beside an activation that sorts")
    own, ones, apply = len(bias) - passed, np.ones(passed), stage.apply
    return Stage(
        matrix,
        bias,
        np.concatenate([stage.lower, ones]),
        np.concatenate([stage.upper, ones]),
        kink=None if stage.kink is None else np.concatenate([np.broadcast_to(stage.kink, own), ones]),
        apply=None if apply is None else (lambda x: np.concatenate([apply(x[..., :own]), x[..., own:]], axis=-1)),
    )
