"""The semidefinite bound of a network's Lipschitz constant, by matrices of what passes between two layers at a time.

LipSDP (Fazlyab, Robey, Hassani, Morari and Pappas, "Efficient and accurate estimation of Lipschitz constants for deep
neural networks", 2019), solved for the network's own structure. Of a difference of two inputs that is no longer than
one, the vectors that later layers need are `T c + N d`, with an unknown c with `c' K^-1 c + d' Q^-1 d <= 1`; before the
first layer T and K are the identity. An activation of `W x` with slopes `centre +- radius` takes any weights q for
which `diag(q) - W Y W'` is positive definite. With Y = T K T' + N Q N' and G = W' diag(q)^-1 W,

    K_next = (1 - Y G)^-1 Y,  T_next = [1; centre W],  N_next = [0; radius],  Q_next = diag(q).

Units of radius zero take no part in G and N. The slope of a score s is at most `sqrt(s Y s')`. Every choice of q gives
a sound bound; the best one is that of the semidefinite program. Its square is convex in all q, and is lowered here by
L-BFGS. For activations that sort groups, all that is used is that a group's output changes no more than its input, so
that a group shares one q. Matrices may be those of a Fourier transform, one for each frequency (`waves`).
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ganlab_certify.chains import Chain

# Steps that L-BFGS remembers, and those in which it must have made progress.
_MEMORY, _PATIENCE = 12, 10
# Weights without a bound count as worse than the last ones by this: little, because the line search interpolates and
# would come back to nearly where it was.
_WORSE = 0.05
# Where `1 - Y G` is nearly singular, as at the best weights, descent is slow. So a barrier, minus the logarithm of its
# determinant, keeps away from there, and is lowered in these steps: about the share by which the bound is too large.
_BARRIERS = (1.0, 0.1, 1e-2, 1e-3, 1e-4)
# What `1 - Y G` must have left of 1, so that rounding in float64 is far below the margin that the bound is raised by.
POSITIVE, MARGIN = 1e-8, 1e-6
# Logarithms of weights further from zero than this have no bound: such weights, or their reciprocals, are not finite.
FARTHEST = -math.log(np.finfo(float).tiny)
# Of the norm that stands for the largest of the labels.
_POWER = 32


def semidefinite_bound(chain: Chain, *, seconds: float = 60.0, tolerance: float = 1e-5) -> float:
    """An upper bound of a chain's Lipschitz constant.

    Args:
        chain: The chain.
        seconds: When to stop; the bound is sound whenever that is.
        tolerance: It stops too where ten steps lower the bound by less than this share.

    Returns:
        The bound, raised by a millionth for rounding; infinity if a number of the chain is not finite.
    """
    if not all(np.isfinite(each).all() for each in (chain.last, *(stage.matrix for stage in chain.stages))):
        return math.inf
    if not chain.last.any() or not chain.stages:
        return float(np.linalg.norm(chain.last)) * (1 + MARGIN)
    _, bounds = program_of(chain).lowered(time.monotonic() + seconds, _BARRIERS, tolerance)
    return float(bounds[0])


def program_of(chain: Chain) -> Program:
    """The program of a chain, with a weight for each unit or sorted group."""
    steps = []
    for stage in chain.stages:
        free = np.arange(int(np.count_nonzero(stage.radius))) // stage.group
        steps.append(Step(stage.matrix[None], np.zeros(stage.matrix.shape[1], bool), stage.centre, stage.radius, free))
    return Program(steps, chain.last[None, None], np.ones(1))


@dataclass(frozen=True)
class Step:
    """A layer at each frequency, behind which are some of the numbers alive before it, then its own.

    Attributes:
        rows: W, `(frequencies, units, numbers alive before)`.
        keep: Which of these numbers are alive behind it.
        centre: The middle of each unit's slopes, `(units,)`.
        radius: Half the width of each unit's slopes, `(units,)`.
        groups: The weight of each unit of another radius than zero, numbers from 0 on.
    """

    rows: np.ndarray
    keep: np.ndarray
    centre: np.ndarray
    radius: np.ndarray
    groups: np.ndarray


@dataclass(frozen=True)
class _Passed:
    """An activation on the way, and what the gradient by its weights needs: W, T, N, q and the next K."""

    groups: np.ndarray
    rows: np.ndarray
    map: np.ndarray
    noise: np.ndarray
    weights: np.ndarray
    inner: np.ndarray


class Program:
    """A network's matrices at each frequency, and the bound as a function of the weights."""

    def __init__(self, steps: Sequence[Step], score: np.ndarray, shares: np.ndarray) -> None:
        """Takes the score's rows `(frequencies, labels, numbers alive)` and how much each frequency counts."""
        self.steps, self._score, self.shares = steps, score, shares
        self._units = sum(len(step.groups) for step in steps)

    def lowered(self, end: float, barriers: Sequence[float], tolerance: float) -> tuple[np.ndarray, np.ndarray]:
        """The logarithms of the best weights found until a time, and the bounds that they give, raised for rounding."""
        logs, best, _, _ = self.evaluated(None)
        chosen = logs

        def function(there: np.ndarray, barrier: float) -> tuple[float, np.ndarray]:
            nonlocal best, chosen
            if time.monotonic() > end:
                raise StopIteration
            _, found, value, gradient = self.evaluated(there, barrier)
            if found.max() < best.max():
                best, chosen = found, there.copy()
            return value, gradient

        for weight in barriers:
            with contextlib.suppress(StopIteration):
                logs = descended(functools.partial(function, barrier=weight / self._units), logs, end, tolerance)
        return chosen, best * (1 + MARGIN)

    def evaluated(
        self, logs: np.ndarray | None, barrier: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
        """Weights, bounds for each label, nearly the logarithm of the largest with the barrier, and its gradient.

        The bounds are infinite if the weights are too small or too large. Without weights it chooses those with which
        each layer alone is bounded by its norm.
        """
        if logs is not None and np.abs(logs).max(initial=0.0) > FARTHEST:
            return _unbounded(logs)
        passed, chosen, at, walls, size = list[_Passed](), list[np.ndarray](), 0, 0.0, self.steps[0].rows.shape[2]
        map_ = inner = np.broadcast_to(np.eye(size), (len(self.shares), size, size))
        noise, q = map_[:, :, :0], np.zeros(0)
        for step in self.steps:
            picked = np.eye(len(step.keep))[step.keep]
            both = np.concatenate([_everywhere(picked, step.rows), step.centre[:, None] * step.rows], axis=1)
            if not len(step.groups):
                map_, noise = both @ map_, both @ noise
                continue
            free, eye = np.flatnonzero(step.radius), np.eye(map_.shape[1])
            squared = map_ @ inner @ _turned(map_) + (noise * q) @ _turned(noise)
            rows, trace = step.rows[:, free], np.trace(squared, axis1=1, axis2=2).real[:, None, None]
            try:
                root = np.linalg.cholesky(squared + 1e-12 * trace * eye)
                seen, count = rows @ root, int(step.groups[-1]) + 1
                if logs is None:
                    norm = max(float(np.linalg.eigvalsh(_turned(seen) @ seen).max()), np.finfo(float).tiny)
                    # Of sorted groups, whose centre is zero, the least are the best.
                    chosen.append(np.full(count, math.log((2.0 if step.centre.any() else 1.001) * norm)))
                weights = np.exp(chosen[-1] if logs is None else logs[at : at + count])[step.groups]
                at += count
                factor = np.linalg.cholesky((1 - POSITIVE) * eye - _turned(seen) @ (seen / weights[:, None]))
            except np.linalg.LinAlgError:
                return _unbounded(logs)
            walls -= float(self.shares @ np.log(np.diagonal(factor, axis1=1, axis2=2).real).sum(axis=1)) * 2
            half = np.linalg.solve(factor, _turned(root))
            passed.append(_Passed(step.groups, rows, map_, noise, weights, inner := _turned(half) @ half))
            spread = np.concatenate([np.zeros((len(picked), len(free))), np.diag(step.radius)[:, free]])
            map_, noise, q = both, _everywhere(spread, both), weights
        along, rest = self._score @ map_, self._score @ noise
        squares = self.shares @ ((along @ inner * along.conj()).real.sum(axis=2) + (np.abs(rest) ** 2 @ q))
        if not np.isfinite(squares).all():
            return _unbounded(logs)
        # The largest of all labels, nearly: two may take turns, and their maximum has a kink there.
        largest = max(float(squares.max()), np.finfo(float).tiny)
        powers = (squares / largest) ** _POWER
        total, shares = largest * powers.sum() ** (1 / _POWER), self.shares[:, None, None]
        by_label = powers / (powers.sum() * np.maximum(squares, np.finfo(float).tiny))
        back = _turned(self._score) @ (by_label[:, None] * self._score) * shares / 2
        gradient = self._gradient(passed, map_, noise, back, barrier)
        logs = np.concatenate([*chosen, np.zeros(0)]) if logs is None else logs
        return logs, np.sqrt(squares), math.log(total) / 2 + barrier * walls, gradient

    def _gradient(
        self, passed: list[_Passed], map_: np.ndarray, noise: np.ndarray, back: np.ndarray, barrier: float
    ) -> np.ndarray:
        """The gradient by the logarithms of weights; `back` is that by the last Y, Hermitian matrices."""
        parts, shares = list[np.ndarray]([np.zeros(0)]), barrier * self.shares[:, None, None]
        for step in passed[::-1]:
            by_inner, rows, q = _turned(map_) @ back @ map_, step.rows, step.weights
            across = rows @ step.inner / q[:, None]
            by_q = (noise.conj() * (back @ noise)).real.sum(axis=(0, 1))
            by_q -= (across @ by_inner * across.conj() + shares * across * rows.conj() / q[:, None]).real.sum(
                axis=(0, 2)
            )
            parts.append(np.bincount(step.groups, by_q * q))
            gram = _turned(rows) @ (rows / q[:, None])
            turn = np.eye(gram.shape[1]) + gram @ step.inner
            back = turn @ by_inner @ _turned(turn) + shares * (turn @ gram)
            map_, noise = step.map, step.noise
        return np.concatenate(parts[::-1])


def _unbounded(logs: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
    logs = np.zeros(0) if logs is None else logs
    return logs, np.full(1, math.inf), math.inf, np.zeros_like(logs)


def _turned(matrices: np.ndarray) -> np.ndarray:
    return matrices.conj().swapaxes(-1, -2)


def _everywhere(matrix: np.ndarray, like: np.ndarray) -> np.ndarray:
    return np.broadcast_to(matrix, (len(like), *matrix.shape))


def descended(
    function: Callable[[np.ndarray], tuple[float, np.ndarray]], logs: np.ndarray, end: float, tolerance: float
) -> np.ndarray:
    """The weights after L-BFGS, from these; only such with a finite bound.

    Args:
        function: Half the logarithm of the squared bound, and its gradient, of the logarithms of weights; it may raise
            StopIteration.
        logs: Where to start.
        end: When to stop, as `time.monotonic` has it.
        tolerance: The progress of ten steps that is worth more.
    """
    from scipy.optimize import OptimizeResult, minimize

    first = function(logs)
    value = before = first[0]
    since, reached = 0, logs
    if not math.isfinite(value):
        return logs

    def bounded(there: np.ndarray) -> tuple[float, np.ndarray]:
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far is one without a bound
            found, gradient = first if np.array_equal(there, logs) else function(there)
        return found if math.isfinite(found) else value + _WORSE, gradient

    def look(intermediate_result: OptimizeResult) -> None:
        nonlocal value, before, since, reached
        value, reached = float(intermediate_result.fun), intermediate_result.x.copy()
        since += 1
        if value < before - tolerance:
            before, since = value, 0
        if since >= _PATIENCE or time.monotonic() > end:
            raise StopIteration

    options = {"maxcor": _MEMORY, "ftol": 0.0, "gtol": 0.0}
    with contextlib.suppress(StopIteration):
        minimize(bounded, logs, jac=True, method="L-BFGS-B", callback=look, options=options)
    return reached
