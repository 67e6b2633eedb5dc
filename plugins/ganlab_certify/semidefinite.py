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
all that is used is that a group's output changes no more than its input, so that a group shares one `r`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

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
_POSITIVE, _MARGIN = 1e-8, 1e-6


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
        return float(np.linalg.norm(chain.last)) * (1 + _MARGIN)
    end, logs = time.monotonic() + seconds, _first(chain.stages)
    best = _value(chain, logs)[0]
    units = sum(len(stage.bias) for stage in chain.stages)
    for weight in _BARRIERS:
        logs = _descended(chain, logs, weight / units, end, tolerance)
        best = min(best, _value(chain, logs)[0])
        if time.monotonic() > end:
            break
    return math.exp(best) * (1 + _MARGIN)


def _descended(chain: Chain, logs: np.ndarray, barrier: float, end: float, tolerance: float) -> np.ndarray:
    """The weights after L-BFGS, from these; only such with a finite bound."""
    from scipy.optimize import OptimizeResult, minimize

    value = before = _value(chain, logs, barrier)[0]
    since = 0
    if not math.isfinite(value):
        return logs

    def bounded(there: np.ndarray) -> tuple[float, np.ndarray]:
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far is one without a bound
            found, gradient = _value(chain, there, barrier)
        return found if math.isfinite(found) else value + _WORSE, gradient

    def look(intermediate_result: OptimizeResult) -> None:
        nonlocal value, before, since
        value = float(intermediate_result.fun)
        since += 1
        if value < before - tolerance:
            before, since = value, 0
        if since >= _PATIENCE or time.monotonic() > end:
            raise StopIteration

    options = {"maxcor": _MEMORY, "ftol": 0.0, "gtol": 0.0}
    found = minimize(bounded, logs, jac=True, method="L-BFGS-B", callback=look, options=options)
    return np.asarray(found.x)


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
    """The next stage's `Y`, and `(R - S)^-1`.

    Raises:
        LinAlgError: These weights are too small.
    """
    from scipy.linalg import cho_factor, cho_solve

    np.linalg.cholesky(np.diag((1 - _POSITIVE) * r) - s)
    factor = cho_factor(np.diag(r) - s, lower=True, check_finite=False)
    inverse = cho_solve(factor, np.eye(len(r)), check_finite=False)
    inverse = (inverse + inverse.T) / 2
    middle = r[:, None] * inverse * r - np.diag(r)
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
            walls += float(np.log(r).sum() + np.linalg.slogdet(inverse)[1])
        kept.append((r, inverse))
    total = float(chain.last @ squared @ chain.last)
    if not (math.isfinite(total) and total > 0):
        return math.inf, np.zeros_like(logs)
    # Backwards: `back` is the derivative by the stage's Y, a symmetric matrix.
    back, gradients = np.outer(chain.last, chain.last) / (2 * total), []
    for stage, (r, inverse) in zip(chain.stages[::-1], kept[::-1], strict=True):
        of_middle = stage.centre[:, None] * back * stage.centre
        by_r = stage.radius**2 * np.diag(back) - np.diag(of_middle) + 2 * ((of_middle * inverse) @ r)
        by_inverse = r[:, None] * of_middle * r
        by_difference = -inverse @ by_inverse @ inverse - barrier * inverse
        by_r = (by_r + np.diag(by_difference)) * r + barrier
        gradients.append(by_r.reshape(-1, stage.group).sum(axis=1))
        back = stage.matrix.T @ -by_difference @ stage.matrix
    return math.log(total) / 2 + barrier * walls, np.concatenate(gradients[::-1])
