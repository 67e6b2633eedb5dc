"""How far apart the distributions are that two samples were drawn from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ganlab.errors import ConfigError, IncompatibleError
from ganlab.transport import exact_w1, rows, sliced_wasserstein
from ganlab_certify.interval import MATCHED, Samples, W1Interval, w1_interval

# Of the rows' range, added on each side to the box in which both distributions are assumed to lie.
_MARGIN = 0.25
_FEWEST, _PERMUTATIONS = 16, 999
# The most rows of a distribution that is given as a whole, and the most numbers of a sample that float64 holds.
_WHOLE, _NUMBERS = 16_384, 2**28


@dataclass(frozen=True)
class SampleDistance:
    """Distances between two distributions, in the Euclidean norm, and between samples of them.

    Attributes:
        interval: Holds the Wasserstein-1 distance between the distributions; its real examples are the first sample.
        compared: How many rows of each the interval rests on.
        points: How many rows of each the figures below were computed from.
        exact_w1: The Wasserstein-1 distance between these rows, which is biased upward.
        sliced_w1: Its mean over projections on lines.
        energy_distance: `2 E|x - y| - E|x - x'| - E|y - y'|` of these rows (Szekely and Rizzo, "Energy statistics",
            2013, eq. 5), at least 0.
        energy_p: How probable one as large is if the distributions are the same.
        mmd_squared: The squared maximum mean discrepancy of these rows (Gretton et al., "A kernel two-sample test",
            2012, eq. 5) under the kernel `exp(-|x - y|^2 / (2 s^2))`, at least 0.
        mmd_p: How probable one as large is if the distributions are the same.
        mmd_bandwidth: s, the median of the distances between different points.
        assumptions: What must be true for the interval to be, one sentence each.
    """

    interval: W1Interval
    compared: tuple[int, int]
    points: int
    exact_w1: float
    sliced_w1: float
    energy_distance: float
    energy_p: float
    mmd_squared: float
    mmd_p: float
    mmd_bandwidth: float
    assumptions: list[str]


def sample_distance(
    x: np.ndarray,
    y: np.ndarray,
    *,
    samples: int = 16_384,
    confidence: float = 0.95,
    box: tuple[float, float] | None = None,
    whole: bool = False,
    paired: bool = False,
) -> SampleDistance:
    """Bounds the Wasserstein-1 distance of two distributions from rows drawn from each, and measures the rows.

    A random half of the rows, or more, chooses functions and couplings, the others bound (`w1_interval`). Tests are
    by 999 permutations: of all rows, or if they are pairs of each pair. Of samples of two sizes random rows of the
    larger are left out, and of samples with more than 2^28 numbers those above.

    Args:
        x: `(n, ...)`, independent draws of the one; every row is taken as one vector.
        y: `(m, ...)`, independent draws of the other, rows of as many numbers.
        samples: How many rows of each choose, and how many bound, at most.
        confidence: How probably the interval holds the distance.
        box: The least and the largest value of any number; None for a box around the rows, a quarter wider
            on each side.
        whole: As `Samples.complete`, of x.
        paired: As `Samples.together`.

    Raises:
        ConfigError: A setting is out of its range, or a value outside the box.
        IncompatibleError: Rows differ in length, are too few, or have a value that is not finite; or pairs have no
            partner.
    """
    if box is not None and not (math.isfinite(box[0]) and math.isfinite(box[1]) and box[0] < box[1]):
        raise ConfigError(f"box = {box!r} must be two finite numbers, the lower one first.")
    if paired and (whole or len(x) != len(y)):
        raise IncompatibleError(
            f"Samples of {len(x):,} and {len(y):,} rows{', the first one whole,' * whole} are not pairs; do not give "
            "them as paired."
        )
    most = max(_FEWEST, _NUMBERS // max(1, x[:1].size))
    if whole and len(x) > min(_WHOLE, most):
        raise IncompatibleError(f"A whole distribution of {len(x):,} rows is too large; at most {min(_WHOLE, most):,}.")
    fewest = len(y) if whole else min(len(x), len(y))
    if fewest < _FEWEST:
        raise IncompatibleError(f"Samples of {len(x):,} and {len(y):,} rows are too small; give {_FEWEST} or more.")
    n = min(fewest, 2 * samples, most)
    random = np.random.default_rng(0)
    chosen = random.permutation(len(y))
    # Rows of samples of one size stay beside each other: as pairs they are a coupling, and may have been drawn as one.
    x = x if whole else x[(chosen if len(x) == len(y) else random.permutation(len(x)))[:n]]
    x, y = rows(x, y[chosen[:n]])
    low, high, said = _box(x, y, box)
    held = n // 2 - (n // 2 % MATCHED if n // 2 >= MATCHED else 0)
    choosing, held_out = (
        Samples(x if whole else x[part], y[part], together=paired, complete=whole)
        for part in (slice(held, None), slice(held))
    )
    interval = w1_interval(choosing, held_out, diameter=float(np.linalg.norm(high - low)), confidence=confidence)
    points = min(n, MATCHED)
    # Rows of a whole distribution are drawn here, so that the tests compare draws.
    drawn, others = x[random.integers(len(x), size=points)] if whole else x[:points], y[:points]
    return SampleDistance(
        interval=interval,
        compared=(len(x), len(y)),
        points=points,
        exact_w1=exact_w1(drawn, others),
        sliced_w1=sliced_wasserstein(drawn, others, order=1),
        **_tests(drawn, others, random, paired=paired),
        assumptions=[said, _assumptions(len(x), whole=whole, paired=paired)],
    )


def _box(x: np.ndarray, y: np.ndarray, box: tuple[float, float] | None) -> tuple[np.ndarray, np.ndarray, str]:
    low, high = np.minimum(x.min(axis=0), y.min(axis=0)), np.maximum(x.max(axis=0), y.max(axis=0))
    if box is None:
        margin = _MARGIN * (high - low)
        said = f"Both distributions lie in the box around these rows, {_MARGIN:.0%} wider on each side."
        return low - margin, high + margin, said
    if low.min() < box[0] or high.max() > box[1]:
        raise ConfigError(
            f"Values lie between {low.min():.6g} and {high.max():.6g}, outside the box from {box[0]:g} to {box[1]:g}. "
            "Give a larger one with --box LOW HIGH."
        )
    said = f"Every value of both distributions lies in [{box[0]:g}, {box[1]:g}]."
    return np.full(x.shape[1], box[0]), np.full(x.shape[1], box[1]), said


def _assumptions(count: int, *, whole: bool, paired: bool) -> str:
    if whole:
        return (
            f"The first distribution is its {count:,} rows, each as likely; rows of the second are independent draws."
        )
    if paired:
        return "Pairs of rows are independent draws."
    return "All rows of both samples are independent draws."


def _tests(x: np.ndarray, y: np.ndarray, random: np.random.Generator, *, paired: bool) -> dict[str, float]:
    """The energy distance and the squared discrepancy of as many rows, with the p-values of permutation tests."""
    from scipy.spatial.distance import cdist

    n = len(x)
    apart = cdist(both := np.concatenate([x, y]), both)
    different = apart[apart > 0]
    bandwidth = float(np.median(different)) if different.size else 1.0
    signs = np.empty((_PERMUTATIONS + 1, 2 * n))
    signs[:] = np.repeat([1.0 / n, -1.0 / n], n)
    if paired:
        swapped = random.choice([-1.0, 1.0], size=(_PERMUTATIONS, n))
        signs[1:] *= np.tile(swapped, 2)
    else:
        random.permuted(signs[1:], axis=1, out=signs[1:])
    figures = {"mmd_bandwidth": bandwidth}
    kernel = np.exp(-0.5 * np.square(apart / bandwidth))
    for value, p, matrix in (("energy_distance", "energy_p", -apart), ("mmd_squared", "mmd_p", kernel)):
        found = np.maximum(((signs @ matrix) * signs).sum(axis=1), 0.0)
        # The first one is as drawn; those that rounding alone tells apart are as large.
        figures |= {value: float(found[0]), p: float(np.mean(found >= found[0] * (1.0 - 1e-9)))}
    return figures
