"""Curves over steps: means and bands over runs of different lengths, and the spread of replicas."""

import math

import numpy as np
import pytest
from synthetic import SETTINGS, write_run

from ganlab.comparing import compare, read_curves

TAG = "critic/wasserstein"


def curve(folder, **options):
    (found,) = read_curves(compare([folder]), TAG, **options)
    return found


def test_mean_and_band_over_runs(tmp_path):
    write_run(tmp_path / "a", seed=0, metrics={TAG: (4.0, 3.0, 2.0)})
    write_run(tmp_path / "b", seed=1, metrics={TAG: (6.0, 3.0, 1.0)})
    write_run(tmp_path / "c", seed=2, metrics={TAG: (5.0, 0.0, 9.0)})
    found = curve(tmp_path)
    assert (found.label, found.steps, found.n) == ("all runs", (10, 20, 30), (3, 3, 3))
    assert found.mean == (5.0, 2.0, 4.0)
    assert (found.low, found.high) == ((4.0, 0.0, 1.0), (6.0, 3.0, 9.0))


def test_a_run_that_ended_early_leaves_the_others(tmp_path):
    write_run(tmp_path / "a", seed=0, metrics={TAG: (4.0, 3.0, 2.0)})
    write_run(tmp_path / "b", seed=1, metrics={TAG: (6.0,)}, status="interrupted", steps=30)
    found = curve(tmp_path)
    assert (found.steps, found.n, found.mean) == ((10, 20, 30), (2, 1, 1), (5.0, 3.0, 2.0))


def test_steps_that_not_every_run_logged_are_left_out(tmp_path):
    write_run(tmp_path / "a", seed=0, metrics={TAG: (1.0, 2.0, 3.0, 4.0)}, every=10)
    write_run(tmp_path / "b", seed=1, metrics={TAG: (10.0, 20.0)}, every=20)
    found = curve(tmp_path)
    assert (found.steps, found.mean, found.n) == ((20, 40), (6.0, 12.0), (2, 2))


def test_values_that_are_not_finite_are_left_out_of_a_mean(tmp_path):
    write_run(tmp_path / "a", seed=0, metrics={TAG: (4.0, math.nan, math.inf)})
    write_run(tmp_path / "b", seed=1, metrics={TAG: (6.0, 3.0, -math.inf)})
    found = curve(tmp_path)
    assert (found.steps, found.mean, found.low, found.n) == ((10, 20), (5.0, 3.0), (4.0, 3.0), (2, 1))


def test_a_long_run_is_thinned_evenly_with_both_ends(tmp_path):
    values = np.arange(1000.0)
    write_run(tmp_path / "a", metrics={TAG: values})
    found = curve(tmp_path)
    assert len(found.steps) == 300
    assert (found.steps[0], found.steps[-1]) == (10, 10_000)
    assert set(np.diff(found.steps)) == {30, 40}
    np.testing.assert_array_equal(found.mean, np.array(found.steps) / 10 - 1)


@pytest.mark.parametrize("replicas", [2, 4])
def test_how_far_replicas_are_apart(tmp_path, replicas):
    write_run(tmp_path / "a", seed=0, metrics={TAG: (4.0, 3.0)}, spread=0.5, replicas=replicas)
    write_run(tmp_path / "b", seed=1, metrics={TAG: (4.0, 3.0)}, spread=1.0, replicas=replicas)
    found = curve(tmp_path, replicas=True)
    assert found.mean == pytest.approx((0.75, 0.75))
    assert found.low == pytest.approx((0.5, 0.5))
    assert found.high == pytest.approx((1.0, 1.0))


def test_one_replica_has_no_spread_and_a_metric_that_nobody_has_no_curve(tmp_path):
    write_run(tmp_path / "a", replicas=1)
    comparison = compare([tmp_path])
    assert read_curves(comparison, TAG, replicas=True) == ()
    assert read_curves(comparison, "nowhere") == ()


def test_a_curve_a_configuration_that_has_the_metric(tmp_path):
    for name in ("gradient_penalty", "spectral_norm"):
        settings = {**SETTINGS, "constraints": name}
        write_run(tmp_path / name, settings=settings, metrics={TAG: (1.0,), f"constraints/{name}/slope": (2.0,)})
    comparison = compare([tmp_path])
    assert [found.label for found in read_curves(comparison, TAG)] == [one.label for one in comparison.configurations]
    assert [found.mean for found in read_curves(comparison, "constraints/spectral_norm/slope")] == [(2.0,)]
