import math
import types

import numpy as np
import pytest
from measured import measure as measured

import ganlab

ANGLES = 2 * np.pi * np.arange(8) / 8
RING = 2.0 * np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
STD = 0.02


def ring(**changes):
    return types.SimpleNamespace(**{"modes": RING, "std": STD, "sample_shape": (2,), **changes})


def measure(points, dataset=None, **arguments):
    return measured("mode_coverage", lambda n, seed: np.asarray(points, np.float32), dataset or ring(), **arguments)


def test_a_perfect_sampler_has_the_theoretical_score():
    rng = np.random.default_rng(0)
    n = 200_000
    points = RING[rng.integers(8, size=n)] + STD * rng.normal(size=(n, 2))
    figures = measure(points)
    # P(chi-squared of two degrees < 9) = 1 - exp(-9/2); its standard error here is 0.00023.
    assert figures["high_quality"] == pytest.approx(1 - math.exp(-4.5), abs=0.001)
    assert round(100 * (1 - math.exp(-4.5)), 1) == 98.9
    assert figures["modes"] == 8
    # 2 n KL is about chi-squared of 7 degrees: 24 is its 99.9th percentile.
    assert 0 <= figures["reverse_kl"] < 24 / (2 * n)


def test_reverse_kl_is_of_the_modes_found_against_all_of_them():
    # Three of four samples in one mode, one in another, and one far away: KL = 3/4 log(8 * 3/4) + 1/4 log(8 * 1/4).
    points = [RING[0], RING[0], RING[0] + [0.059, 0.0], RING[3], [9.0, 9.0]]
    figures = measure(points)
    assert figures["modes"] == 2
    assert figures["high_quality"] == pytest.approx(4 / 5)
    assert figures["reverse_kl"] == pytest.approx(0.75 * math.log(6) + 0.25 * math.log(2))


def test_a_collapsed_generator_and_a_useless_one_are_log_k_away_from_uniform():
    away = {"reverse_kl": pytest.approx(math.log(8))}
    assert measure([RING[5]] * 3) == {"modes": 1, "high_quality": 1, **away}
    assert measure([[9.0, 9.0], [np.nan, 0.0]]) == {"modes": 0, "high_quality": 0, **away}


def test_a_sample_counts_up_to_the_given_number_of_deviations():
    points = [RING[0] + [2.5 * STD, 0.0], RING[0] + [0.0, 3.5 * STD]]
    assert measure(points)["high_quality"] == 0.5
    assert measure(points, sigmas=4.0)["high_quality"] == 1.0
    assert measure(points, sigmas=2.0)["high_quality"] == 0.0


def test_it_draws_the_given_number_of_samples_with_its_seed():
    drawn = []
    evaluator = ganlab.component("evaluators", "mode_coverage")(samples=7, seed=3)
    evaluator.evaluate(lambda n, seed: drawn.append((n, seed)) or np.zeros((n, 2), np.float32), ring(), None)
    assert drawn == [(7, 3)]


@pytest.mark.parametrize("missing", ["modes", "std"])
def test_a_dataset_that_is_not_a_mixture_is_refused(missing):
    with pytest.raises(
        ganlab.IncompatibleError, match=f"cannot measure SimpleNamespace, which has no {missing}: .* Drop it"
    ):
        measure(RING, ring(**{missing: None}))


def test_samples_of_another_shape_are_refused():
    with pytest.raises(ganlab.IncompatibleError, match=r"samples of shape \(3,\); the modes of .* of shape \(2,\)"):
        measure(np.zeros((4, 3)))


def said(figures):
    return ganlab.component("evaluators", "mode_coverage")().diagnose(figures)


def test_no_mode_few_good_samples_and_lost_modes_are_complained_of():
    far = measure([[9.0, 9.0]] * 20)
    assert said(far).startswith("No sample is near any mode")
    stray = measure([RING[0]] + [[9.0, 9.0]] * 19)
    assert said(stray).startswith("5.0% of the samples are near a mode")
    assert said(measure([RING[0]] * 10)).startswith("The samples are spread as if over 13% of the modes")
    # Three of eight modes are fewer than half of them, five are not.
    assert "38% of the modes" in said(measure(np.repeat(RING[:3], 10, axis=0)))
    assert said(measure(np.repeat(RING[:5], 10, axis=0))) is None
    assert said(measure(RING)) is None
