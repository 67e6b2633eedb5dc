"""The semidefinite bound of a chain's Lipschitz constant, by matrices of one layer at a time.

LipSDP (Fazlyab, Robey, Hassani, Morari and Pappas, "Efficient and accurate estimation of Lipschitz constants for deep
neural networks", 2019) with a multiplier for each unit, solved for the chain's own structure. Of a difference of two
inputs, let `Y` be a matrix such that the difference `v` after some stages always has `v' Y^-1 v <= |input|^2`; the
identity before the first. A stage `v -> activation(W v)` with slopes `centre +- radius` adds for every unit an unknown
part no larger than `radius` times its input, and with any positive weights `r` for which `R - S` is positive definite,
`R = diag(r)` and `S = W Y W'`,

    Y_next = centre (R (R - S)^-1 R - R) centre + radius R radius.

The score's slope is at most `sqrt(last' Y last)`. Every choice of `r` gives a sound bound; the best one is that of the
semidefinite program. The bound is convex in all `r`, and is lowered here by L-BFGS. For activations that sort groups,
all that is used is that a group's output changes no more than its input, so that a group shares one `r`. Units of
radius zero, of branches that are passed on, take no part in R: with P the inverse of R - S on the others and zero
elsewhere, the first term is

    centre (S + S P S) centre.
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from ganlab_certify.chains import Chain, Stage

# Steps that L-BFGS remembers, and those in which it must have made progress.
_MEMORY, _PATIENCE = 12, 10
# Weights without a bound count as worse than the last ones by this: little, because the line search interpolates and
# would come back to nearly where it was.
_WORSE = 0.05
# Where `R - S` is nearly singular, as at the best weights, descent is slow. So a barrier, minus the logarithm of its
# determinant, keeps away from there, and is lowered in these steps: about the share by which the bound is too large.
_BARRIERS = (1.0, 0.1, 1e-2, 1e-3, 1e-4)
# What R - S must have left of R, so that rounding in float64 is far below the margin that the bound is raised by.
POSITIVE, MARGIN = 1e-8, 1e-6


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
    if not chain.last.any():
        return 0.0
    if not chain.stages:
        return float(np.linalg.norm(chain.last)) * (1 + MARGIN)
    end, logs = time.monotonic() + seconds, _first(chain.stages)
    best = _value(chain, logs)[0]
    units = sum(len(stage.bias) for stage in chain.stages)
    for weight in _BARRIERS:
        logs = descended(functools.partial(_value, chain, barrier=weight / units), logs, end, tolerance)
        best = min(best, _value(chain, logs)[0])
        if time.monotonic() > end:
            break
    return math.exp(best) * (1 + MARGIN)


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

    value = before = function(logs)[0]
    since, reached = 0, logs
    if not math.isfinite(value):
        return logs

    def bounded(there: np.ndarray) -> tuple[float, np.ndarray]:
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far is one without a bound
            found, gradient = function(there)
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


def _first(stages: Sequence[Stage]) -> np.ndarray:
    """Logarithms of weights with which each stage alone is bounded by the norm of its matrix."""
    squared, logs = np.eye(stages[0].matrix.shape[1]), []
    for stage in stages:
        s = stage.matrix @ squared @ stage.matrix.T
        largest = max(float(np.linalg.eigvalsh(s)[-1]), np.finfo(float).tiny)
        r = np.full(len(s), (1.0 + 1e-3 if stage.group > 1 else 2.0) * largest)
        squared, _ = _next(stage, s, r)
        logs.append(np.log(r[:: stage.group]))
    return np.concatenate(logs)


def _next(stage: Stage, s: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The next stage's `Y`, and P.

    Raises:
        LinAlgError: These weights are too small.
    """
    from scipy.linalg import cho_factor, cho_solve

    free = np.flatnonzero(stage.radius)
    among = s[np.ix_(free, free)]
    np.linalg.cholesky(np.diag((1 - POSITIVE) * r[free]) - among)
    factor = cho_factor(np.diag(r[free]) - among, lower=True, check_finite=False)
    inverse = np.zeros_like(s)
    inverse[np.ix_(free, free)] = cho_solve(factor, np.eye(len(free)), check_finite=False)
    inverse = (inverse + inverse.T) / 2
    middle = s + s @ inverse @ s
    return stage.centre[:, None] * middle * stage.centre + np.diag(stage.radius**2 * r), inverse


def _value(chain: Chain, logs: np.ndarray, barrier: float = 0.0) -> tuple[float, np.ndarray]:
    """Half the logarithm of the squared bound, and its gradient; infinity where the weights are too small or too large.

    Args:
        chain: The chain.
        logs: The logarithms of the weights.
        barrier: The weight of `log det R - log det (R - S)` of all stages, which is added.
    """
    squared = np.eye(chain.inputs)
    kept, at, walls = [], 0, 0.0
    for stage in chain.stages:
        groups = len(stage.bias) // stage.group
        r = np.exp(np.repeat(logs[at : at + groups], stage.group))
        at += groups
        s = stage.matrix @ squared @ stage.matrix.T
        try:
            squared, inverse = _next(stage, (s + s.T) / 2, r)
        except np.linalg.LinAlgError:
            return math.inf, np.zeros_like(logs)
        if barrier:
            free = np.flatnonzero(stage.radius)
            walls += float(np.log(r[free]).sum() + np.linalg.slogdet(inverse[np.ix_(free, free)])[1])
        kept.append((r, (s + s.T) / 2, inverse))
    total = float(chain.last @ squared @ chain.last)
    if not (math.isfinite(total) and total > 0):
        return math.inf, np.zeros_like(logs)
    # Backwards: `back` is the derivative by the stage's Y, a symmetric matrix.
    back, gradients = np.outer(chain.last, chain.last) / (2 * total), []
    for stage, (r, s, inverse) in zip(chain.stages[::-1], kept[::-1], strict=True):
        of_middle = stage.centre[:, None] * back * stage.centre
        across = inverse @ s
        onward = of_middle + across @ of_middle  # (1 + P S) times it
        by_s = onward + onward @ across.T + barrier * inverse
        by_r = stage.radius**2 * np.diag(back) - np.einsum("ij,jk,ik->i", across, of_middle, across, optimize=True)
        by_r = (by_r - barrier * np.diag(inverse)) * r + barrier * (stage.radius > 0)
        gradients.append(by_r.reshape(-1, stage.group).sum(axis=1))
        back = stage.matrix.T @ by_s @ stage.matrix
    return math.log(total) / 2 + barrier * walls, np.concatenate(gradients[::-1])
