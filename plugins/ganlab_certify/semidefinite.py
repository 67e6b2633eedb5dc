"""The semidefinite bound of a chain's Lipschitz constant, by matrices of one layer at a time.

LipSDP (Fazlyab, Robey, Hassani, Morari and Pappas, "Efficient and accurate estimation of Lipschitz constants for deep
neural networks", 2019) with a multiplier for each unit, solved for the chain's own structure. Of a difference of two
inputs, let `Y` be a matrix such that the difference `v` after some stages always has `v' Y^-1 v <= |input|^2`; the
identity before the first. A stage `v -> activation(W v)` with slopes `centre +- radius` adds for every unit an unknown
part no larger than `radius` times its input, and with any positive weights `r` for which `R - S` is positive definite,
`R = diag(r)` and `S = W Y W'`,

    Y_next = centre (R (R - S)^-1 R - R) centre + radius R radius.

The score's slope is at most `sqrt(last' Y last)`. Every choice of `r` gives a sound bound; the best one is that of the
semidefinite program. The bound is convex in all `r`, and is lowered here by L-BFGS. For
activations that sort groups, all that is used is that a group's output changes no more than its input, so that a group
shares one `r`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np

from ganlab_certify.chains import Chain, Stage

_MEMORY, _ARMIJO = 12, 1e-4
_LONGEST, _SHORTEST = 4.0, 1e-9  # the largest change of a logarithm in a step, and the least share of a step
_PATIENCE = 10
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
    """The weights after L-BFGS with a line search that halves its step."""
    value, gradient = _value(chain, logs, barrier)
    before, since = value, 0
    history: list[tuple[np.ndarray, np.ndarray]] = []
    while time.monotonic() < end and since < _PATIENCE and math.isfinite(value):
        step, rate = _direction(gradient, history), 1.0
        step *= min(1.0, _LONGEST / max(float(np.abs(step).max()), np.finfo(float).tiny))
        slope = float(step @ gradient)
        while True:
            there = logs + rate * step
            value_there, gradient_there = _value(chain, there, barrier)
            if value_there <= value + _ARMIJO * rate * slope:
                break
            rate /= 2
            if rate < _SHORTEST:
                break
        if rate < _SHORTEST:
            if not history:
                break
            history = []
            continue
        history = [*history, (there - logs, gradient_there - gradient)][-_MEMORY:]
        logs, value, gradient = there, value_there, gradient_there
        since += 1
        if value < before - tolerance:
            before, since = value, 0
    return logs


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
    inverse = cho_solve(cho_factor(np.diag(r) - s, lower=True), np.eye(len(r)))
    inverse = (inverse + inverse.T) / 2
    c, d = (0.0, 1.0) if stage.group > 1 else (stage.centre, stage.radius)
    middle = r[:, None] * inverse * r - np.diag(r)
    return _outer(c, len(r)) * middle + np.diag(d * d * r), inverse


def _outer(c: np.ndarray | float, units: int) -> np.ndarray:
    c = np.broadcast_to(c, units)
    return c[:, None] * c


def _value(chain: Chain, logs: np.ndarray, barrier: float = 0.0) -> tuple[float, np.ndarray]:
    """Half the logarithm of the squared bound, and its gradient; infinity where the weights are too small.

    Args:
        chain: The chain.
        logs: The logarithms of the weights.
        barrier: The weight of `log det R - log det (R - S)` of all stages, which is added.
    """
    squared: np.ndarray | None = None
    kept, at, walls = [], 0, 0.0
    for stage in chain.stages:
        groups = len(stage.bias) // stage.group
        r = np.exp(np.repeat(logs[at : at + groups], stage.group))
        at += groups
        w = stage.matrix
        s = w @ w.T if squared is None else w @ squared @ w.T
        try:
            after, inverse = _next(stage, (s + s.T) / 2, r)
        except np.linalg.LinAlgError:
            return math.inf, np.zeros_like(logs)
        if barrier:
            walls += float(np.log(r).sum() + np.linalg.slogdet(inverse)[1])
        kept.append((r, inverse))
        squared = after
    assert squared is not None
    total = float(chain.last @ squared @ chain.last)
    if not (math.isfinite(total) and total > 0):
        return math.inf, np.zeros_like(logs)
    # Backwards: `back` is the derivative by the stage's Y, a symmetric matrix.
    back, gradients = np.outer(chain.last, chain.last) / (2 * total), []
    for stage, (r, inverse) in zip(chain.stages[::-1], kept[::-1], strict=True):
        c, d = (np.zeros_like(r), np.ones_like(r)) if stage.group > 1 else (stage.centre, stage.radius)
        of_middle = c[:, None] * back * c
        by_r = d * d * np.diag(back) - np.diag(of_middle) + 2 * ((of_middle * inverse) @ r)
        by_inverse = r[:, None] * of_middle * r
        by_difference = -inverse @ by_inverse @ inverse - barrier * inverse
        by_r = (by_r + np.diag(by_difference)) * r + barrier
        gradients.append(by_r.reshape(-1, stage.group).sum(axis=1))
        back = stage.matrix.T @ -by_difference @ stage.matrix
    return math.log(total) / 2 + barrier * walls, np.concatenate(gradients[::-1])


def _direction(gradient: np.ndarray, history: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The direction of L-BFGS (Nocedal, 1980); that of steepest descent where the history does not curve upwards."""
    direction, factors = gradient.copy(), []
    for moved, turned in reversed(history):
        curve = float(moved @ turned)
        factor = float(moved @ direction) / curve if curve > 0 else 0.0
        factors.append(factor)
        direction -= factor * turned
    if history and (curve := float(history[-1][0] @ history[-1][1])) > 0:
        direction *= curve / float(history[-1][1] @ history[-1][1])
    else:
        direction /= max(1.0, float(np.abs(direction).max()))
    for (moved, turned), factor in zip(history, reversed(factors), strict=True):
        curve = float(moved @ turned)
        if curve > 0:
            direction += (factor - float(turned @ direction) / curve) * moved
    return -direction if float(direction @ gradient) > 0 else -gradient
