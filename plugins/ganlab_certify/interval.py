"""An interval for the Wasserstein-1 distance of two distributions, from samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ganlab.errors import ConfigError, IncompatibleError
from ganlab.transport import exact_w1, rows
from ganlab_certify.confidence import matching_radius, mean_radius
from ganlab_certify.functions import fitted

# Points that are matched with one another: the cost grows as their square.
MATCHED = 2048


@dataclass(frozen=True)
class Samples:
    """Draws from both distributions.

    Attributes:
        real: `(n, ...)`; every example is taken as one vector. Independent draws, or every example.
        fake: `(m, ...)`, independent draws; n of them unless `real` is every example.
        together: Whether row i of both was drawn together, so that the two may lie near each other; the pairs are
            independent of one another. Otherwise all draws are.
        complete: Whether `real` is not drawn, but the distribution itself: all its examples, equally likely.
    """

    real: np.ndarray
    fake: np.ndarray
    together: bool = False
    complete: bool = False


@dataclass(frozen=True)
class Lipschitz:
    """A function with a proved Lipschitz constant in the Euclidean norm.

    Attributes:
        function: `(n, ...) -> (n,)`, large where real examples lie.
        constant: The bound.
    """

    function: Callable[[np.ndarray], np.ndarray]
    constant: float


@dataclass(frozen=True)
class W1Interval:
    """An interval that holds the distance, but for a probability of `1 - confidence`.

    Attributes:
        lower: The lower end, at least 0.
        upper: The upper end.
        confidence: The probability of the interval's ends both being true.
        lower_by: The function behind the lower end: a name of `functions`, "direction", "64 cones", "256 cones", "cones
            at examples", "cones at samples", or "nothing" if no function tells the samples apart.
        lower_radius: How much the lower end has given away to chance.
        upper_by: The coupling behind the upper end: "pairs", row by row as drawn, or "matching", best within batches.
        upper_radius: How much the upper end has added for chance.
    """

    lower: float
    upper: float
    confidence: float
    lower_by: str
    lower_radius: float
    upper_by: str
    upper_radius: float


def w1_interval(
    choosing: Samples,
    held_out: Samples,
    *,
    diameter: float,
    functions: Mapping[str, Lipschitz] | None = None,
    confidence: float = 0.95,
) -> W1Interval:
    """Bounds the Wasserstein-1 distance between two distributions, from below and from above.

    From below by a function f with the constant L, clipped to a range [a, b] (which keeps L): the distance is at least
    `(E f(real) - E f(fake)) / L` (Kantorovich and Rubinstein), and expectations are those of the held-out samples less
    the radius of an empirical Bernstein bound. From above by a coupling: the distance is at most its mean cost. Pairs
    that were drawn together are one; the optimal matching within batches is another, because the mean over all batches
    of matched points has the two distributions on its sides. Both ends miss with a probability of at most
    `(1 - confidence) / 2`. Function, range and coupling are chosen on other samples than those that bound.

    Matching is biased upward as `exact_w1` is, in high dimension by more than most distances: no interval from
    independent samples alone can be narrow there (Niles-Weed and Rigollet, "Estimation of Wasserstein distances in the
    spiked transport model", 2022). It is narrow in few dimensions, for a `complete` distribution, and for pairs.

    Args:
        choosing: Samples that functions are fitted to and choices made on.
        held_out: Samples that nothing was fitted to, of the same distributions.
        diameter: No two points of the distributions are farther apart.
        functions: Candidates for the lower end by name, beside the functions fitted here.
        confidence: The probability that both ends are true.

    Raises:
        ConfigError: The confidence or the diameter is out of its range.
        IncompatibleError: Samples differ in length or in kind, are fewer than 4, or have a value that is not finite.
    """
    if not 0.5 <= confidence < 1:
        raise ConfigError(f"confidence = {confidence!r} must be at least 0.5 and below 1.")
    if not (diameter >= 0 and math.isfinite(diameter)):
        raise ConfigError(f"diameter = {diameter!r} must be at least 0 and finite.")
    choosing, held_out = _checked(choosing), _checked(held_out)
    level = (1.0 - confidence) / 2.0
    candidates = dict(functions or {})
    halves = _halves(choosing)
    for name, function in fitted(halves[0].real, halves[0].fake).items():
        candidates[name] = Lipschitz(function, 1.0)
    lower_by, lower, lower_radius = _lower(candidates, halves[1], held_out, level)
    upper_by, upper, upper_radius = _upper(halves[1], held_out, diameter, level)
    return W1Interval(
        lower=max(0.0, lower),
        upper=max(0.0, min(upper, diameter)),
        confidence=confidence,
        lower_by=lower_by,
        lower_radius=lower_radius,
        upper_by=upper_by,
        upper_radius=upper_radius,
    )


def _lower(
    candidates: Mapping[str, Lipschitz], choosing: Samples, held_out: Samples, level: float
) -> tuple[str, float, float]:
    """The function that was best on one part of the samples, the end, and its radius."""
    best, chosen = 0.0, None
    for name, candidate in candidates.items():
        scores = _scores(candidate, choosing)
        if scores is None:
            continue
        gap = scores[0].mean() - scores[1].mean()
        if gap > best:
            ends = min(s.min() for s in scores), max(s.max() for s in scores)
            best, chosen = gap, (name, candidate, ends)
    scores = None if chosen is None else _scores(chosen[1], held_out)
    if chosen is None or scores is None:
        return "nothing", 0.0, 0.0
    name, _, ends = chosen
    # Clipped to the range of other samples, a function is as Lipschitz as before, and its values are bounded.
    real, fake = (np.clip(each, *ends) for each in scores)
    width = ends[1] - ends[0]
    drawn, range_ = (fake, width) if held_out.complete else (real - fake, 2.0 * width)
    radius = mean_radius(drawn, range_, level)
    return name, float(real.mean() - fake.mean()) - radius, radius


def _scores(candidate: Lipschitz, samples: Samples) -> tuple[np.ndarray, np.ndarray] | None:
    """The scores of real and generated samples over the constant; None if one of these is no number to bound with."""
    if not 0 < candidate.constant < math.inf:
        return None
    real, fake = (
        np.asarray(candidate.function(x), np.float64) / candidate.constant for x in (samples.real, samples.fake)
    )
    return (real, fake) if np.isfinite(real).all() and np.isfinite(fake).all() else None


def _upper(choosing: Samples, held_out: Samples, diameter: float, level: float) -> tuple[str, float, float]:
    """The coupling that was best on one part of the samples, the end, and its radius."""
    pairs = not held_out.complete
    if pairs:
        costs = _costs(choosing)
        radius = mean_radius(np.resize(costs, len(held_out.real)), diameter, level)
        matched = _matching(choosing, batches=1) + _radius(choosing, diameter, _whole(held_out), level)
        pairs = costs.mean() + radius < matched
    if pairs:
        costs = _costs(held_out)
        radius = mean_radius(costs, diameter, level)
        return "pairs", float(costs.mean()) + radius, radius
    radius = _radius(held_out, diameter, _whole(held_out), level)
    return "matching", _matching(held_out) + radius, radius


def _radius(samples: Samples, diameter: float, draws: int, level: float) -> float:
    """The radius of a matching of so many draws that are distributed as these."""
    half = len(samples.fake) // 2
    kinds = (samples.fake,) if samples.complete else (samples.fake, samples.real)
    ways = [np.linalg.norm(x[:half] - x[half : 2 * half], axis=1) for x in kinds]
    if samples.together:  # one draw is a row of both
        return matching_radius([ways[0] + ways[1]], 2.0 * diameter, draws, level)
    return matching_radius(ways, diameter, draws, level)


def _whole(samples: Samples) -> int:
    """How many samples lie in whole batches."""
    n = len(samples.fake)
    return n if n < MATCHED else n - n % MATCHED


def _matching(samples: Samples, batches: int | None = None) -> float:
    """The mean cost of the optimal matching within batches."""
    size = min(MATCHED, len(samples.fake))
    costs = []
    for start in range(0, _whole(samples), size)[:batches]:
        real = samples.real if samples.complete else samples.real[start : start + size]
        costs.append(exact_w1(real, samples.fake[start : start + size]))
    return float(np.mean(costs))


def _costs(samples: Samples) -> np.ndarray:
    return np.linalg.norm(samples.real - samples.fake, axis=1)


def _halves(samples: Samples) -> tuple[Samples, Samples]:
    """Two parts of the draws; a distribution that is there as a whole is in both."""

    def part(i: int) -> Samples:
        real = samples.real if samples.complete else samples.real[i::2]
        return Samples(real, samples.fake[i::2], samples.together, samples.complete)

    return part(0), part(1)


def _checked(samples: Samples) -> Samples:
    real, fake = rows(samples.real, samples.fake)
    if len(fake) < 4 or (not samples.complete and len(real) != len(fake)):
        raise IncompatibleError(
            f"{len(real)} real and {len(fake)} generated samples: an interval needs at least 4 generated ones, and as "
            "many real ones unless these are complete."
        )
    if samples.complete and samples.together:
        raise IncompatibleError("Samples cannot be both drawn together and complete; leave out one of the two.")
    if not (np.isfinite(real).all() and np.isfinite(fake).all()):
        raise IncompatibleError("A sample has a value that is not finite, so that the distance has no bounds.")
    return Samples(real, fake, samples.together, samples.complete)
