"""Compares gradients with central differences of their loss, along directions; pure numbers, without TensorFlow."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ganlab_verify.trace import norm

Values = Mapping[str, np.ndarray]

# The error of a central difference is the square of the step, here 1e-6 of a variable's size, and the rounding of the
# loss's terms, 1e-16 of them, divided by the step.
# Parts in float32 leave so much rounding that the steps must be long.
TOLERANCE, _LOOSE = 1e-5, 1e-3
# In this order: where a rectifier switches between the two ends (a loss with slopes in it then jumps), a shorter step
# avoids it; where a gradient is small beside the loss, a longer step exceeds rounding. Parts in float32 round so much
# that only long steps are informative.
_STEPS, _LONG_STEPS = (1e-6, 1e-7, 1e-5, 1e-8, 1e-4, 1e-3), (3e-3, 1e-3, 1e-2)
# The rounding in a difference must be less than the second part of it, or the difference is not used. If there are
# steps where it is less than the first, only those count.
_SHARP, _CLEAR = 1e-4, 1e-2
# Where none agrees with the gradient, two differences must be this many times nearer to each other than to it.
_CERTAIN = 4.0
_DOUBLE = 1e-15
# How many roundings of its terms a loss may be off by: if all of its operations are in float64, and if one or two are
# in float32, whose roundings average out over pixels.
_ROUNDINGS, _FEW = 64, 0.25


@dataclass(frozen=True)
class Slope:
    """A loss's slope along one direction, by the gradient and by a difference.

    Attributes:
        where: The variable that the direction is in; empty for a direction of all variables.
        claimed: The slope by the gradient.
        found: The slope by the difference whose step comes nearest.
        size: The scale of the error: the larger of the two, or a tenth of the gradient's own norm if that is larger.
        error: How far they are apart, relative to the size.
        limit: The largest error that rounding and the tolerance allow.
        vague: Whether rounding is as large as the slope at every step, so that nothing can be concluded.
    """

    where: str
    claimed: float
    found: float
    size: float
    error: float
    limit: float
    vague: bool

    @property
    def departs(self) -> bool:
        """Whether the gradient is wrong along this direction."""
        return not self.vague and not self.error <= self.limit


def slopes(
    loss: Callable[[Values], float], weights: Values, gradient: Values, *, terms: float, precision: float, seed: int = 0
) -> list[Slope]:
    """Compares a gradient with its loss along two directions of all weights, and along one of each variable.

    A direction is half random and half the gradient's own: the slope along it is not small by accident, and it also
    depends on errors at right angles to the gradient.

    Args:
        loss: The loss as a function of the weights.
        weights: The weights at which the gradient was taken, float64.
        gradient: The gradient, by the same names.
        terms: How large the loss's terms are before they cancel.
        precision: The relative rounding of one operation, 2.2e-16 in float64.
        seed: The seed of the directions.

    Returns:
        First the slopes along all weights, then those of the variables in order, unless the first are all vague.
    """
    random = np.random.default_rng(seed)
    roundings, tolerance = (_ROUNDINGS, TOLERANCE) if precision < _DOUBLE else (_FEW, _LOOSE)
    results: list[Slope] = []
    for names in [list(weights)] * min(2, len(weights)) + [[name] for name in weights]:
        if len(results) == 2 and all(slope.vague for slope in results):
            break
        direction = _direction({name: gradient[name] for name in names}, random)
        # The smallest variable sets the step for all: the gradient may lie in that one, a few biases among kernels.
        size = min(norm([weights[name]]) or 1.0 for name in names)
        where = names[0] if len(names) == 1 else ""
        own = norm(gradient[name] for name in names)
        steps = [relative * size for relative in (_STEPS if precision < _DOUBLE else _LONG_STEPS)]
        results.append(
            _slope(where, loss, weights, gradient, direction, steps, own, terms * precision * roundings, tolerance)
        )
    return results


def _direction(gradient: Values, random: np.random.Generator) -> dict[str, np.ndarray]:
    drawn = {name: random.standard_normal(value.shape) for name, value in gradient.items()}
    total, length = norm(gradient.values()), norm(drawn.values())
    mixed = {name: drawn[name] / length + (gradient[name] / total if total > 0 else 0.0) for name in drawn}
    if not norm(mixed.values()) > 0.1:  # a scalar, whose two directions may cancel
        mixed = drawn
    length = norm(mixed.values())
    return {name: value / length for name, value in mixed.items()}


def _slope(
    where: str,
    loss: Callable[[Values], float],
    weights: Values,
    gradient: Values,
    direction: Values,
    steps: Sequence[float],
    own: float,
    rounding: float,
    tolerance: float,
) -> Slope:
    claimed = float(sum(np.sum(gradient[name] * d) for name, d in direction.items()))
    tried: list[Slope] = []
    for step in steps:
        ends = [loss({**weights, **{n: weights[n] + s * step * d for n, d in direction.items()}}) for s in (1.0, -1.0)]
        difference = (ends[0] - ends[1]) / (2.0 * step)
        size = max(abs(difference), abs(claimed), own / 10)
        noise = rounding / step / size if size else math.inf  # nothing changes, so there is nothing to compare
        error = abs(difference - claimed) / (size or 1.0)
        tried.append(Slope(where, claimed, difference, size, error, tolerance + noise, vague=not noise < _CLEAR))
        if not size or (noise < _SHARP and not tried[-1].departs):
            return tried[-1]
    tried.sort(key=lambda slope: slope.limit)  # the longest step first
    sharp, clear = ([slope for slope in tried if slope.limit - tolerance < most] for most in (_SHARP, _CLEAR))
    measures = sharp if len(sharp) > 1 else clear
    if not measures:
        return min(tried, key=lambda slope: slope.error / slope.limit)
    best = min(measures, key=lambda slope: slope.error / slope.limit)
    if not best.departs:
        return best
    # The shortest steps are the most exact. Differences that agree with one another no better than with the gradient
    # prove nothing against it.
    nearest, *others = measures[::-1]
    certain = bool(others) and nearest.error > _CERTAIN * abs(nearest.found - others[0].found) / nearest.size
    return replace(nearest, vague=not certain)


def worst(measured: Sequence[Slope]) -> Slope | None:
    """The slope that comes nearest to its limit or goes furthest beyond, among those that are not vague."""
    clear = [slope for slope in measured if not slope.vague]
    return max(clear, key=lambda slope: slope.error / slope.limit, default=None)
