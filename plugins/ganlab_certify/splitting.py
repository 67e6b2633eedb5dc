"""The Lipschitz constant within a box of few dimensions, or everywhere, by splitting boxes."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from ganlab_certify.chains import Chain, UnsuitableError

# Boxes at once, and the numbers that each stage may hold for them.
_MOST, _NUMBERS = 4096, 2**20
# Rectifiers with both signs in a box whose changes of the gradient are taken in pairs, and all patterns of whose signs
# are tried: where two kinks of different layers meet, only that is tight in the smallest boxes. As many kinks as there
# are inputs meet somewhere.
_PAIRS, _TRIED = 16, 4
# Boxes this small, relative to the first one, are not halved: what rounding adds to their bounds stays.
_SMALLEST = 1e-9


def split_everywhere(chain: Chain, *, seconds: float = 60.0, tolerance: float = 0.01) -> tuple[float, float]:
    """Bounds of a chain's Lipschitz constant on all of space, as `split_bound` has them in a box.

    A chain of rectifiers f with biases b is `f(x) = F(x / r, 1) r`, where F has the biases b s / r for a further input
    s and is homogeneous: its slopes by x are the same along rays. So the slopes at all x are those of F on the cube's
    sides s = 1 and x_i = +-1, with s from 0 to 1, which boxes of as many dimensions as x cover; r is any length.
    """
    if not chain.of_rectifiers:
        raise UnsuitableError("only rectifiers, with one kink at zero, are homogeneous")
    n, stages = chain.inputs, []
    first = chain.stages[0] if chain.stages else None
    kinks = np.zeros(1) if first is None else np.abs(first.bias) / np.linalg.norm(first.matrix, axis=1).clip(1e-12)
    scale = 4.0 * float(np.median(kinks)) or 1.0
    for stage in chain.stages:
        assert stage.kink is not None
        matrix = np.block([[stage.matrix, stage.bias[:, None] / scale], [np.zeros(stage.matrix.shape[1]), np.ones(1)]])
        lower, upper, kink = (np.append(x, 1.0) for x in (stage.lower, stage.upper, stage.kink))
        bias = np.zeros(len(matrix))
        stages.append(replace(stage, matrix=matrix, bias=bias, lower=lower, upper=upper, kink=kink))
    cone = Chain(tuple(stages), np.append(chain.last, chain.bias / scale), 0.0)
    low, high = np.tile(np.append(-np.ones(n), 0.0), (2 * n + 1, 1)), np.ones((2 * n + 1, n + 1))
    low[0, n] = 1.0
    for i in range(n):
        high[1 + i, i], low[1 + n + i, i] = -1.0, 1.0
    return split_bound(cone, low, high, seconds=seconds, tolerance=tolerance, counted=n)


def split_bound(
    chain: Chain,
    low: np.ndarray,
    high: np.ndarray,
    *,
    seconds: float = 60.0,
    tolerance: float = 0.01,
    counted: int | None = None,
) -> tuple[float, float]:
    """Bounds of a chain's Lipschitz constant within a box, by bounds in ever smaller boxes.

    In a small box most rectifiers keep their sign, and the critic is nearly an affine function: what the others can add
    is bounded. Boxes whose bound is above the steepest slope seen are halved. The number of boxes grows with the power
    of the number of inputs: for critics of points, not of images.

    Args:
        chain: A chain of rectifiers.
        low: The least value of each input, `(inputs,)`, or of several boxes, `(boxes, inputs)`.
        high: The largest.
        seconds: When to stop; the bounds are sound then, too.
        tolerance: It stops too where the bounds are this close, relative to the lower one.
        counted: The number of inputs, from the first, by which slopes are taken; None for all.

    Returns:
        The steepest slope at a point of the box, and an upper bound.

    Raises:
        UnsuitableError: An activation is not a rectifier.
    """
    if not chain.of_rectifiers:
        raise UnsuitableError("only rectifiers, with one kink at zero, keep one slope in a small box")
    end, best = time.monotonic() + seconds, 0.0
    sizes = [np.abs(stage.matrix) for stage in chain.stages]
    counted = chain.inputs if counted is None else counted
    widest = max([chain.inputs, *(len(stage.bias) for stage in chain.stages)])
    count = max(1, min(_MOST, _NUMBERS // (widest * chain.inputs)))
    low, high = (np.asarray(end, np.float64).reshape(-1, chain.inputs) for end in (low, high))
    # Upper bounds, middles and half widths of the boxes left.
    uppers, middles, halves = np.full(len(low), np.inf), (low + high) / 2, (high - low) / 2
    smallest = _SMALLEST * float(halves.max())
    while time.monotonic() < end:
        order = np.argsort(-uppers)
        uppers, middles, halves = uppers[order], middles[order], halves[order]
        open_boxes = int(np.searchsorted(-uppers, -best * (1 + tolerance)))
        if open_boxes == 0 or halves[0].max() < smallest:
            break
        uppers, middles, halves = uppers[:open_boxes], middles[:open_boxes], halves[:open_boxes]
        taken = slice(0, (count + 1) // 2)
        middle, half = _halved(middles[taken], halves[taken])
        slopes, bounds = _bounds(chain, sizes, middle, half, best * (1 + tolerance), counted)
        bounds = np.minimum(bounds, np.repeat(uppers[taken], 2))
        best = max(best, float(slopes.max()))
        uppers = np.concatenate([uppers[taken.stop :], bounds])
        middles = np.concatenate([middles[taken.stop :], middle])
        halves = np.concatenate([halves[taken.stop :], half])
    # What was put aside is at most this far above the steepest slope.
    return best, max(best * (1 + tolerance), float(uppers.max(initial=0.0)))


def _halved(middles: np.ndarray, halves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both halves of each box, across its longest side."""
    rows, longest = np.arange(len(halves)), halves.argmax(axis=1)
    half = halves.copy()
    half[rows, longest] /= 2
    shift = np.zeros_like(half)
    shift[rows, longest] = half[rows, longest]
    middle = np.stack([middles - shift, middles + shift], axis=1).reshape(-1, half.shape[1])
    return middle, np.repeat(half, 2, axis=0)


def _bounds(
    chain: Chain,
    sizes: list[np.ndarray],
    middle: np.ndarray,
    half: np.ndarray,
    enough: float,
    counted: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The slope in the middle of each box, and a bound of the slopes in it, each `(boxes,)`; tighter above `enough`.

    Where a rectifier may have both signs, its slope is the mean of the two and a rest E. A gradient is that of the
    means and, for each stage, the means' gradient from behind times E times the true derivative of the stage's input,
    which is the means' one and an error in turn. Errors are carried unit by unit, through absolute values of matrices
    (`sizes`): in a small box few units have one, and norms of matrices are those of all units.
    """
    boxes, inputs = middle.shape
    # The output of a stage is `y + slopes . place` and an error; `slopes`, `(boxes, inputs, units)`, are the means'.
    y, slopes = middle, np.broadcast_to(np.eye(inputs), (boxes, inputs, inputs))
    error = wrong = np.zeros((boxes, inputs))  # of the output, and of its derivative
    at, passed, kept, sure = middle, [], [], np.ones(boxes, bool)
    reach = np.maximum(np.abs(middle), 1e-99)  # zero only of a unit that is so nearby, too
    for stage, size in zip(chain.stages, sizes, strict=True):
        below = np.zeros(len(stage.bias)) if stage.kink is None else stage.kink
        u, slopes = y @ stage.matrix.T + stage.bias, slopes @ stage.matrix.T
        error, wrong = error @ size.T, wrong @ size.T
        spread = (np.abs(slopes) * half[:, :, None]).sum(axis=1) + error
        # Above the rounding of these sums.
        spread += 1e-12 * (np.abs(y) @ size.T + np.abs(stage.bias) + spread)
        both = np.abs(u) < spread
        mean = np.where(both, (1 + below) / 2, np.where(u > 0, 1.0, below))
        radius = np.where(both, abs(1 - below) / 2, 0.0)
        # |f(u) - mean u| is between zero, at the kink, and twice this at an end.
        gap = radius * (np.abs(u) + spread) / 2
        kept.append((mean, radius, slopes[:, :counted], wrong))
        y = mean * u + np.where(both, np.sign(1 - below) * gap, 0.0)
        error = np.abs(mean) * error + gap
        wrong = (np.abs(mean) + radius) * wrong + radius * np.linalg.norm(slopes[:, :counted], axis=1)
        slopes = mean[:, None] * slopes
        exact, whole = at @ stage.matrix.T + stage.bias, reach @ size.T + np.abs(stage.bias)
        # On a kink the signs taken may be those of no piece: there the slope counts as zero.
        sure &= ((np.abs(exact) > 1e-12 * whole) | (whole == 0)).all(axis=1)
        passed.append(np.where(exact > 0, 1.0, below))
        at = passed[-1] * exact
        reach = np.abs(at)
    slope = gradient = np.broadcast_to(chain.last, (boxes, len(chain.last)))
    rest, parts = np.zeros(boxes), []
    for stage, (mean, radius, derivative, off), signs in zip(chain.stages[::-1], kept[::-1], passed[::-1], strict=True):
        loose = gradient * radius
        rest += (np.abs(loose) * off).sum(axis=1)
        parts.append(loose[:, None] * derivative)
        gradient, slope = (gradient * mean) @ stage.matrix, (slope * signs) @ stage.matrix
    gradient, slope = gradient[:, :counted], slope[:, :counted]
    bounds = _longest(gradient, np.concatenate(parts, axis=2)) if parts else np.linalg.norm(gradient, axis=1)
    bounds = (bounds + rest) * (1 + 1e-9)
    kinks = sum(((radius > 0).sum(axis=1) for _, radius, _, _ in kept), np.zeros(boxes, int))
    few = np.flatnonzero((kinks <= max(_TRIED, counted or inputs)) & (bounds > enough))
    if len(few) and kept:
        slopes_of = [(mean[few], radius[few]) for mean, radius, _, _ in kept]
        bounds[few] = np.minimum(bounds[few], _steepest_pattern(chain, slopes_of, counted) * (1 + 1e-9))
    return np.where(sure, np.linalg.norm(slope, axis=1), 0.0), bounds


def _steepest_pattern(chain: Chain, slopes: list[tuple[np.ndarray, np.ndarray]], counted: int | None) -> np.ndarray:
    """The longest gradient over all patterns of the few rectifiers with both signs, `(boxes,)`.

    `slopes` has the mean and the radius of the slopes of each stage, each `(boxes, units)`.
    """
    # Which of its box's undecided rectifiers, counted from the first stage, each one is.
    before, numbers = np.zeros((len(slopes[0][0]), 1), int), []
    for _, radius in slopes:
        number = before + np.cumsum(radius > 0, axis=1)
        numbers.append(number - 1)
        before = number[:, -1:]
    longest = np.zeros(len(before))
    for pattern in range(2 ** int(before.max())):
        gradient = np.broadcast_to(chain.last, (len(before), len(chain.last)))
        for stage, (mean, radius), number in zip(chain.stages[::-1], slopes[::-1], numbers[::-1], strict=True):
            signs = np.where(pattern >> np.maximum(number, 0) & 1, 1.0, -1.0)
            gradient = (gradient * (mean + signs * radius)) @ stage.matrix
        longest = np.maximum(longest, np.linalg.norm(gradient[:, :counted], axis=1))
    return longest


def _longest(gradient: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """A bound of the length of `gradient + sum of +- parts`, whatever the signs; exact for two parts.

    Args:
        gradient: `(boxes, inputs)`.
        parts: `(boxes, inputs, parts)`.
    """
    along = np.abs(np.einsum("bi,bip->bp", gradient, parts)).sum(axis=1)
    lengths = np.linalg.norm(parts, axis=1)
    few = min(_PAIRS, lengths.shape[1])
    chosen = np.argpartition(-lengths, few - 1, axis=1)[:, :few]
    longest = np.take_along_axis(parts, chosen[:, None], axis=2)
    among = np.abs(np.einsum("bip,biq->bpq", longest, longest)).sum(axis=(1, 2))
    of_few = np.take_along_axis(lengths, chosen, axis=1).sum(axis=1)
    others = np.maximum(lengths.sum(axis=1) - of_few, 0.0)
    squares = np.square(gradient).sum(axis=1) + 2 * along + among + 2 * of_few * others + others**2
    return np.sqrt(squares)
