"""How far a mean of bounded values may be from its expectation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def mean_radius(values: np.ndarray, width: float, level: float) -> float:
    """How far the expectation lies at most beyond the mean, on one side, but for a probability of `level`.

    The empirical Bernstein bound of Maurer and Pontil, "Empirical Bernstein bounds and sample-variance penalization"
    (2009), theorem 4: `sqrt(2 V log(2 / level) / n) + 7 width log(2 / level) / (3 (n - 1))`, V the sample variance.

    Args:
        values: `(n,)`, independent, of one distribution.
        width: The length of an interval in which they certainly lie.
        level: The probability of being wrong.
    """
    n = len(values)
    if n < 2:
        return width
    log = math.log(2.0 / level)
    deviation = float(np.sqrt(np.var(values, ddof=1)))
    return min(width, deviation * math.sqrt(2.0 * log / n) + 7.0 * width * log / (3.0 * (n - 1)))


def matching_radius(moves: Sequence[np.ndarray], longest: float, draws: int, level: float) -> float:
    """How far the expectation of a mean matched cost lies at most beyond it, but for a probability of `level`.

    A draw in another place changes the mean cost by at most the way between the places over the number of draws. The
    expectations given the first 1, 2, ... draws are then a martingale whose steps are bounded and have a variance of at
    most `E way^2 / (2 draws^2)`: Freedman, "On tail probabilities for martingales" (1975), theorem 1.6. That variance
    is itself bounded by `mean_radius`, for a fifth of the level.

    Args:
        moves: For each kind of draw, `(k,)` ways between two of them, independent of one another.
        longest: No way is longer.
        draws: How many independent draws of each kind there are.
        level: The probability of being wrong.
    """
    share = 0.2 * level / len(moves)
    halves, limit = [0.5 * np.square(ways) for ways in moves], 0.5 * longest**2
    variance = sum(min(limit, float(h.mean()) + mean_radius(h, limit, share)) for h in halves) / draws
    log = math.log(1.0 / (0.8 * level))
    step = longest * log / (3.0 * draws)
    return step + math.sqrt(step**2 + 2.0 * variance * log)
