"""The exact Lipschitz constant of a small critic with rectifiers, by branch and bound over their signs."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ganlab_certify.averaged import averaged_bound
from ganlab_certify.chains import Chain, UnsuitableError

# A cell into which no ball of this radius fits counts as empty: cells that merely touch have a point or an edge in
# common. A sliver as thin as that is left out with them.
_SMALLEST = 1e-9


@dataclass(order=True)
class _Node:
    """Signs of the first rectifiers, and the polyhedron of inputs that have them.

    Attributes:
        priority: Minus the bound of the slopes there.
        order: Breaks ties.
        chain: The chain with these signs: fixed rectifiers have one slope.
        fixed: How many rectifiers have a sign, stage by stage.
        map: The input of the stage at hand as an affine function of the critic's, `(units, inputs)` and `(units,)`.
        faces: The polyhedron `faces[:, :-1] x <= faces[:, -1]`, rows of length one.
    """

    priority: float
    order: int
    chain: Chain = field(compare=False)
    fixed: tuple[int, int] = field(compare=False)
    map: tuple[np.ndarray, np.ndarray] = field(compare=False)
    faces: np.ndarray = field(compare=False)


def exact_constant(
    chain: Chain, *, seconds: float = 60.0, box: tuple[np.ndarray, np.ndarray] | None = None
) -> tuple[float, float]:
    """The Lipschitz constant of a chain of rectifiers: the steepest of its linear pieces.

    The cells of equal signs are convex polyhedra; which of them exist is decided by linear programs, and what cannot
    be as steep as a piece that was found is left out. For critics of some dozens of units.

    Args:
        chain: A chain whose activations have one kink, at zero.
        seconds: When to stop. The bound is sound then, too.
        box: The least and the largest value of each input; by default all of space.

    Returns:
        The slope of a cell that was found, and an upper bound; both are the constant if the search was finished.

    Raises:
        UnsuitableError: An activation is not a rectifier.
    """
    if not chain.of_rectifiers:
        raise UnsuitableError("only rectifiers, with one kink at zero, have linear pieces to search")
    end, order, best = time.monotonic() + seconds, itertools.count(), 0.0
    faces = np.zeros((0, chain.inputs + 1))
    if box is not None:
        ones = np.eye(chain.inputs)
        faces = np.column_stack([np.vstack([ones, -ones]), np.concatenate([box[1], -np.asarray(box[0])])])
    start = np.eye(chain.inputs), np.zeros(chain.inputs)
    heap = [_Node(-averaged_bound(chain), next(order), chain, (0, 0), start, faces)]
    while heap:
        node = heapq.heappop(heap)
        if -node.priority <= best:
            return best, best
        if time.monotonic() > end:
            return best, -node.priority
        at, unit = node.fixed
        if at == len(chain.stages):
            best = max(best, -node.priority)
            continue
        for child in _children(node, at, unit, order):
            if -child.priority > best:
                heapq.heappush(heap, child)
    return best, best


def _children(node: _Node, at: int, unit: int, order: itertools.count[int]) -> Sequence[_Node]:
    """The two signs of the next rectifier, as far as inputs have them."""
    stage, (ways, origin) = node.chain.stages[at], node.map
    slope = stage.matrix[unit] @ ways
    offset = float(stage.matrix[unit] @ origin + stage.bias[unit])
    length = float(np.linalg.norm(slope))
    below = 0.0 if stage.kink is None else float(stage.kink[unit])
    children = []
    for above in (True, False) if below != 1 else (True,):
        faces = node.faces
        if below == 1:
            pass  # passed on, with one slope
        elif length > 0:
            face = np.append(-slope, offset) if above else np.append(slope, -offset)
            faces = np.vstack([faces, face / length])
            if not _has_inside(faces):
                continue
        elif (offset > 0) != above:
            continue
        value = 1.0 if above else below
        lower, upper = stage.lower.copy(), stage.upper.copy()
        lower[unit] = upper[unit] = value
        stages = list(node.chain.stages)
        stages[at] = replace(stage, lower=lower, upper=upper)
        chain, fixed, place = replace(node.chain, stages=tuple(stages)), (at, unit + 1), node.map
        if unit + 1 == len(stage.bias):
            fixed = (at + 1, 0)
            place = upper[:, None] * (stage.matrix @ ways), upper * (stage.matrix @ origin + stage.bias)
        bound = min(-node.priority, averaged_bound(chain))
        children.append(_Node(-bound, next(order), chain, fixed, place, faces))
    return children


def _has_inside(faces: np.ndarray) -> bool:
    """Whether a ball fits into the polyhedron: the largest radius, at most one, by a linear program.

    Where the program is not solved, the cell counts as there, so that the bound stays sound.
    """
    from scipy.optimize import linprog

    inputs = faces.shape[1] - 1
    table = np.column_stack([faces[:, :-1], np.ones(len(faces))])
    widest, bounds = np.append(np.zeros(inputs), -1.0), [(None, None)] * inputs + [(0, 1)]
    program = linprog(widest, A_ub=table, b_ub=faces[:, -1], bounds=bounds, method="highs")
    infeasible = 2
    return program.status != infeasible and (program.x is None or program.x[-1] > _SMALLEST)
