"""Intervals for the Wasserstein-1 distance hold the truth."""

import math

import numpy as np
import pytest
from ganlab_certify.confidence import matching_radius, mean_radius
from scipy import stats

import ganlab
from ganlab.transport import Lipschitz, Samples, w1_interval


def line(random, n):
    """u^2 + 1/2 against u, u uniform: everything moves upward, so the distance is the difference of the means, 1/3."""
    return Samples(random.uniform(size=(n, 1)) ** 2 + 0.5, random.uniform(size=(n, 1)))


def rays(random, n):
    """Points of a cube of 16 dimensions moved outward by up to a half of their length, in pairs."""
    y = random.uniform(-1.0, 1.0, size=(n, 16))
    return Samples(y * (1.0 + 0.5 * random.uniform(size=(n, 1))), y, together=True)


NORM = {"norm": Lipschitz(lambda x: 3.0 * np.linalg.norm(x, axis=1), 3.0)}
# E |y| of the uniform distribution on [-1, 1]^16, by 10^7 points: 2.2944 (standard error 1e-4); moves are a quarter.
RAYS = 2.2944 / 4


def atoms(random, n):
    """Four corners of a square as the whole distribution, against points near each: |(x, y)| uniform up to 0.4."""
    corners = np.array([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]])
    angle, radius = random.uniform(0.0, 2.0 * math.pi, size=n), random.uniform(0.0, 0.4, size=n)
    moves = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return Samples(corners, corners[random.integers(4, size=n)] + moves, complete=True)


# The distance; the diameter; where the expectations of both ends are the distance itself, nothing is easier to miss.
CASES = {"line": (line, 1 / 3, 1.5, {}), "rays": (rays, RAYS, 12.0, NORM), "atoms": (atoms, 0.2, 4.0, {})}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_distance_lies_inside_in_all_but_a_few_of_200_trials(case):
    draw, truth, diameter, functions = CASES[case]
    held = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        choosing, held_out = draw(random, 128), draw(random, 512)
        found = w1_interval(choosing, held_out, diameter=diameter, functions=functions)
        held += found.lower <= truth <= found.upper
    # At least 95% are promised; fewer than this are a matter of one in a thousand then.
    assert held >= stats.binom.ppf(0.001, 200, 0.95)


@pytest.mark.parametrize(
    ("case", "width"), [pytest.param("line", 0.3, marks=pytest.mark.slow), ("rays", 0.25), ("atoms", 1.0)]
)
def test_more_samples_make_it_narrow(case, width):
    draw, truth, diameter, functions = CASES[case]
    random = np.random.default_rng(0)
    found = w1_interval(draw(random, 2048), draw(random, 4096), diameter=diameter, functions=functions)
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower < width * truth
    few = w1_interval(draw(random, 64), draw(random, 128), diameter=diameter, functions=functions)
    assert few.upper - few.lower > 2.0 * (found.upper - found.lower)


def test_the_ends_rest_on_what_suits_the_samples():
    random = np.random.default_rng(0)
    found = {
        case: w1_interval(draw(random, 128), draw(random, 2048), diameter=diameter, functions=functions)
        for case, (draw, _, diameter, functions) in CASES.items()
    }
    assert (found["rays"].lower_by, found["rays"].upper_by) == ("norm", "pairs")
    assert found["atoms"].lower_by == "cones at examples"
    assert (found["line"].upper_by, found["atoms"].upper_by) == ("matching", "matching")


def test_learned_cones_find_a_potential_in_sixteen_dimensions():
    def inward(random, n):
        y = random.uniform(-1.0, 1.0, size=(n, 16))
        return Samples(y * random.uniform(size=(n, 1)) ** 4, y)

    # Along rays to the centre, so that -|x| is an optimal critic: E |y| (1 - 1/5).
    truth, random = 0.8 * 4 * RAYS, np.random.default_rng(0)
    found = w1_interval(inward(random, 1024), inward(random, 16384), diameter=8.0)
    assert found.lower_by.endswith(" cones")
    assert 0.93 * truth < found.lower < truth


def test_a_larger_claim_of_the_constant_lowers_the_lower_end():
    random = np.random.default_rng(0)
    choosing, held_out = rays(random, 128), rays(random, 2048)
    steep = {"norm": Lipschitz(NORM["norm"].function, 6.0)}
    one, other = (w1_interval(choosing, held_out, diameter=12.0, functions=f) for f in (NORM, steep))
    assert one.lower > 1.3 * other.lower


@pytest.mark.slow
def test_no_lower_end_of_10_000_random_critics_is_above_the_distance():
    random, false = np.random.default_rng(0), []
    for trial in range(10_000):
        dims, width = int(random.integers(1, 6)), 2 * int(random.integers(1, 9))
        critic = _random_critic(random, dims, width)
        shift = random.normal(size=dims) * random.exponential()
        scale = random.exponential(size=dims)

        def draw(n, dims=dims, scale=scale, shift=shift):
            # A distribution against itself moved by `shift`: the distance is its length.
            x, y = (random.uniform(-1.0, 1.0, size=(n, dims)) * scale for _ in range(2))
            return Samples(x + shift, y)

        diameter = float(np.linalg.norm(2.0 * scale + np.abs(shift)))
        found = w1_interval(draw(32), draw(64), diameter=diameter, functions={"critic": critic})
        if found.lower > np.linalg.norm(shift) * (1 + 1e-9):
            false.append((trial, found, np.linalg.norm(shift)))
    assert not false


def _random_critic(random, dims, width):
    """Two layers of random matrices and sorted pairs, its constant the product of numpy's norms."""
    first, second = random.normal(size=(dims, width)), random.normal(size=(width, 1))
    constant = np.linalg.norm(first, 2) * np.linalg.norm(second, 2)

    def scores(x):
        hidden = np.sort((x @ first).reshape(len(x), -1, 2), axis=2).reshape(len(x), -1)
        return (hidden @ second)[:, 0]

    return Lipschitz(scores, float(constant))


def test_the_radius_of_a_mean_is_the_papers():
    values = np.random.default_rng(0).uniform(size=50)
    variance = sum((a - b) ** 2 for i, a in enumerate(values) for b in values[:i]) / (50 * 49)
    log = math.log(2 / 0.01)
    assert mean_radius(values, 1.0, 0.01) == pytest.approx(math.sqrt(2 * variance * log / 50) + 7 * log / (3 * 49))
    assert mean_radius(values[:1], 2.0, 0.01) == 2.0


def test_the_radius_of_a_matching_solves_freedmans_inequality():
    ways = np.full(100, 0.5)
    radius = matching_radius([ways], 2.0, 1000, 0.01)
    # The variance's own radius, for a fifth of the level, on values in [0, 2] that do not vary.
    variance = (0.125 + 7 * 2.0 * math.log(2 / 0.002) / (3 * 99)) / 1000
    assert math.exp(-(radius**2) / (2 * (variance + 2.0 / 1000 * radius / 3))) == pytest.approx(0.008)


def test_a_critic_that_is_not_finite_bounds_nothing():
    random = np.random.default_rng(0)
    broken = {
        "broken": Lipschitz(lambda x: np.full(len(x), np.nan), 1.0),
        "free": Lipschitz(NORM["norm"].function, 0.0),
    }
    found = w1_interval(line(random, 64), line(random, 128), diameter=1.5, functions=broken)
    assert found.lower_by not in ("broken", "free")


def test_one_distribution_is_at_the_distance_zero():
    random = np.random.default_rng(0)
    x = [random.normal(size=(n, 2)) for n in (512, 512, 1024, 1024)]
    found = w1_interval(Samples(x[0], x[1]), Samples(x[2], x[3]), diameter=12.0)
    assert found.lower == 0.0 < found.upper


@pytest.mark.parametrize(
    ("samples", "options", "message"),
    [
        (Samples(np.ones((8, 2)), np.ones((8, 3))), {}, "must be of one length"),
        (Samples(np.ones((8, 2)), np.ones((9, 2))), {}, "as many real ones unless these are complete"),
        (Samples(np.ones((8, 2)), np.full((8, 2), np.inf)), {}, "not finite"),
        (Samples(np.ones((8, 2)), np.ones((8, 2)), together=True, complete=True), {}, "drawn together and complete"),
        (Samples(np.ones((8, 2)), np.ones((8, 2))), {"confidence": 1.0}, "confidence = 1.0 must be at least 0.5"),
        (Samples(np.ones((8, 2)), np.ones((8, 2))), {"diameter": math.inf}, "diameter = inf must be"),
    ],
)
def test_refusals(samples, options, message):
    with pytest.raises(ganlab.GanlabError, match=message):
        w1_interval(samples, samples, **{"diameter": 1.0, **options})
