"""Measures against the programs of their authors on the same features, whose figures are kept here."""

import json
import subprocess
import sys

import numpy as np
import programs
import pytest
from ganlab_builtin.evaluators import copying
from ganlab_builtin.evaluators.frechet import FrechetInfinity
from ganlab_builtin.evaluators.kernel import KernelDistance, vendi_score
from ganlab_builtin.evaluators.transport import MongeInceptionDistance
from measured import gaussian, measure, normal
from programs import HELD_OUT, MADE, PAIR, TRAIN
from sklearn.cluster import KMeans
from small import Points

import ganlab

CMMD = {"kernel": "gaussian", "unbiased": False, "scale": 1000.0}
# By measure, its figure here and that of the program.
FIGURES = {
    # torch-fidelity, git 5e211a9, of one feature: there, the directions do not matter.
    "mind": (lambda: MongeInceptionDistance().measure(*(x[:, :1] for x in PAIR)), 0.16507621854543686),
    # dgm-eval, git 74c79f7: compute_FD_infinity with default_rng(0), compute_polynomial_mmd and compute_authpct.
    "frechet_infinity": (lambda: FrechetInfinity().measure(*PAIR), 0.44487882443178106),
    "kid": (lambda: KernelDistance().measure(*PAIR), 0.6856402546717177),
    "authentic": (lambda: 100 * copying.authentic(MADE, TRAIN), 40.57143020629883),
    "real_authentic": (lambda: 100 * copying.authentic(HELD_OUT, TRAIN), 54.0),
    # vendi-score 0.0.3: score_X.
    "vendi_score": (lambda: vendi_score(MADE), 5.806710320562976),
    # sayakpaul/cmmd-pytorch, git f7673a9.
    "cmmd": (lambda: KernelDistance(**CMMD).measure(*PAIR), 3.3779685809),
    # marcojira/fld, git ffbbf20: CTTest with numpy's seed 0, which dgm-eval equals, and FLD with rows in this order.
    # Their cells are scikit-learn's; those of another start of k-means give -2.70.
    "ct": (lambda: copying.copying_statistic(TRAIN, HELD_OUT, MADE, 0, _centres()), -2.665681345176473),
    "fld": (lambda: copying.feature_likelihood(TRAIN, HELD_OUT, MADE)[0], 3.1067215867610853),
    "gap": (lambda: copying.feature_likelihood(TRAIN, HELD_OUT, MADE)[1], -59.97902572697539),
    # prdc 0.2, with five neighbours.
    "density": (lambda: _neighbours("density_coverage", 5)["density"], 1.124),
    "coverage": (lambda: _neighbours("density_coverage", 5)["coverage"], 0.9566666666666667),
    "precision": (lambda: _neighbours("precision_recall", 5)["precision"], 0.98),
    "recall": (lambda: _neighbours("precision_recall", 5)["recall"], 0.91),
}


def _centres():
    return KMeans(3, n_init=10, random_state=0).fit(TRAIN).cluster_centers_


def _neighbours(name, k, **settings):
    order = np.argsort(np.random.default_rng(0).permutation(600))
    data = Points(np.concatenate([PAIR[1], PAIR[1]])[order])
    return measure(name, lambda n, seed: PAIR[0].astype(np.float32), data, neighbours=k, samples=300, **settings)


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_those_of_the_authors_programs(name):
    compute, expected = FIGURES[name]
    assert compute() == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
def test_the_programs_give_these_figures():
    done = subprocess.run([sys.executable, programs.__file__], capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout)
    if not figures:
        pytest.skip("None of the programs that tests/evaluators/programs.py names is installed.")
    for name, found in figures.items():
        assert found == pytest.approx(FIGURES[name][1], rel=1e-4), name


def test_mind_of_a_shift_is_three_times_its_square():
    # Every projection moves by <u, s>, whose mean square over the sphere is |s|^2 / d.
    x = np.random.default_rng(0).normal(size=(50, 6))
    shift = np.array([1.0, -2.0, 0.5, 0.0, 3.0, 1.0])
    found = MongeInceptionDistance(projections=20_000).measure(x + shift, x)
    assert found == pytest.approx(3 * float(shift @ shift), rel=0.03)


@pytest.mark.parametrize("both", [False, True])
def test_the_interval_of_frechet_infinity_holds_the_distance(both):
    """Samples of N(1, 1) against N(0, 1) in four dimensions: 4, and with few real examples 4 and their bias."""
    inside, plain = 0, []
    for seed in range(20):
        random = np.random.default_rng([seed, 9])
        data = Points(random.normal(size=(400, 4)))
        x = (1 + random.normal(size=(200, 4))).astype(np.float32)
        figures = measure("frechet_infinity", lambda n, seed, x=x: x, data, samples=200, both=both, seed=seed)
        inside += figures["low"] <= 4.0 + (0.0 if both else 4 * 1.25 / 200) <= figures["high"]
        plain.append(figures["real_against_real"])
    assert inside >= 16  # of 20 at 95%: fewer with a probability of 0.3%
    if both:
        assert abs(np.mean(plain)) < 0.02


def test_copies_are_found():
    data = Points(TRAIN)
    arguments = {"held_out": Points(HELD_OUT), "samples": 400}
    copies = measure("copying", lambda n, seed: data._points[:n] + np.float32(1e-3), data, **arguments)
    assert copies["authentic"] < 0.01
    assert copies["ct"] < -10
    assert copying.copying_statistic(TRAIN, HELD_OUT, MADE, 0) == pytest.approx(FIGURES["ct"][1], abs=0.1)
    fresh = measure("copying", normal(d=8), gaussian(8), samples=300)
    assert abs(fresh["ct"]) < 4
    assert abs(fresh["authentic"] - fresh["real_authentic"]) < 0.15
    assert set(measure("copying", normal(d=8), data, samples=100)) == {"authentic"}
    copied = measure("fld", lambda n, seed: data._points[:n] + np.float32(1e-3), data, **arguments)
    new = measure("fld", normal(d=8), gaussian(8), samples=300)
    assert copied["gap"] < -300 < -30 < new["gap"]
    assert copied["distance"] > 100 > 10 > abs(new["distance"])


def test_examples_held_out_are_asked_for_and_must_fit():
    with pytest.raises(ganlab.IncompatibleError, match=r"Points has none. Set evaluators\.fld\.held_out"):
        measure("fld", normal(d=8), Points(TRAIN))
    with pytest.raises(ganlab.IncompatibleError, match=r"copying\.held_out has examples of shape \(3,\)"):
        measure("copying", normal(d=8), Points(TRAIN), held_out=Points(TRAIN[:, :3]), samples=50)
    for name in ("copying", "fld", "vendi_score", "frechet_infinity", "mind"):
        figures = measure(name, lambda n, seed: np.full((n, 8), np.nan), gaussian(8), samples=30)
        assert np.isnan(figures["distance" if "distance" in figures else next(iter(figures))])


def test_bootstrap_intervals_are_those_of_means():
    """Of a share they are nearly the normal approximation's."""
    for name, figure in (("precision_recall", "recall"), ("density_coverage", "coverage")):
        figures = _neighbours(name, 5, resamples=2000)
        half = 1.96 * np.sqrt(figures[figure] * (1 - figures[figure]) / 300)
        assert figures[f"{figure}_high"] - figures[f"{figure}_low"] == pytest.approx(2 * half, rel=0.12)
        assert figures[f"{figure}_low"] < figures[figure] < figures[f"{figure}_high"]
    plain = _neighbours("density_coverage", 5)
    assert plain.items() <= figures.items()
    assert figures["density_low"] < plain["density"] < figures["density_high"]
