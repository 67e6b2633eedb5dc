"""Paired effects: held against scipy, and against what is known of planted runs."""

import json

import numpy as np
import pytest
from command_lines import command
from ganlab_compare.pairing import paired
from scipy import stats
from synthetic import write_run

import ganlab


def make_run(folder, name, seed, value, weight, **info):
    """A run with one figure."""
    settings = {"constraints.gradient_penalty.weight": weight}
    figures = {"metrics": {}, "evaluation": {"kid/mmd": (value,)}}
    return write_run(folder / name, seed=seed, settings=settings, **figures, **info).path


@pytest.fixture
def sweep(tmp_path):
    """Two weights with five seeds each, whose noise is mostly the seed's; returns the values too."""
    random = np.random.default_rng(0)
    shared, own = random.normal(size=5), 0.1 * random.normal(size=(2, 5))
    values = np.stack([1 + shared + own[0], 1.3 + shared + own[1]])
    for i, weight in enumerate((1.0, 10.0)):
        for seed in range(5):
            make_run(tmp_path, f"w{i}-s{seed}", seed, float(values[i, seed]), weight)
    return tmp_path, values


def test_an_effect_and_its_interval_are_those_of_scipy(sweep):
    folder, values = sweep
    comparison = ganlab.compare([folder], metrics=["evaluation/kid/mmd:min"])
    (one,) = paired(comparison).values()
    labels = [c.label for c in comparison.configurations]
    mine, theirs = (values[0], values[1]) if "10" in labels[0] else (values[1], values[0])
    expected = stats.ttest_rel(mine, theirs).confidence_interval(0.95)
    assert (one.pairs, one.by, one.against) == (5, "seed", labels[0])
    assert one.effect == pytest.approx(np.mean(mine - theirs), rel=1e-12)
    assert (one.low, one.high) == pytest.approx((expected.low, expected.high), rel=1e-6)
    wide = stats.t.ppf(0.975, 4) * np.sqrt((mine.var(ddof=1) + theirs.var(ddof=1)) / 5)
    assert one.unpaired_high - one.effect == pytest.approx(wide, rel=1e-6)
    assert one.gain == pytest.approx((mine.var(ddof=1) + theirs.var(ddof=1)) / (mine - theirs).var(ddof=1))
    assert one.gain > 10  # nine tenths of the noise is shared


def test_the_command_prints_both_intervals_and_json_has_them(sweep):
    folder, _ = sweep
    arguments = ["compare", folder, "--metric", "evaluation/kid/mmd:min", "--paired"]
    printed = command(*arguments)
    assert "Without pairing: [" in printed
    assert "beyond chance" in printed
    (row,) = json.loads(command(*arguments, "--json"))["paired"]
    assert row["pairs"] == 5
    assert row["low"] < row["effect"] < row["high"]


@pytest.mark.parametrize("moved", [False, True])
def test_forks_pair_with_their_parents(moved, tmp_path):
    folder = tmp_path / "runs"
    parents = [make_run(folder, f"p{i}", i, 1.0 + i, 1.0) for i in range(3)]
    for i, parent in enumerate(parents):
        origin = {"run": str(parent), "step": 5}
        make_run(folder, f"f{i}", i, 1.5 + i + 0.01 * i, 10.0, forked_from=origin)
    if moved:
        folder = folder.rename(tmp_path / "elsewhere")
    comparison = ganlab.compare([folder], metrics=["evaluation/kid/mmd:min"])
    (one,) = paired(comparison).values()
    assert (one.pairs, one.by) == (3, "fork")
    assert abs(one.effect) == pytest.approx(0.51)


@pytest.mark.parametrize("origin", [3, {"run": 4}, {"run": "a\0b"}, {"run": "/nowhere", "step": "x"}])
def test_runs_without_anything_shared_are_refused(tmp_path, origin):
    make_run(tmp_path, "a", 0, 1.0, 1.0, forked_from=origin)
    make_run(tmp_path, "b", 1, 2.0, 10.0)
    comparison = ganlab.compare([tmp_path], metrics=["evaluation/kid/mmd:min"])
    with pytest.raises(ganlab.RunError, match="no run shares its seed"):
        paired(comparison)


def test_seeds_pair_beside_forks_and_pairs_that_are_left_out_are_counted(tmp_path):
    for seed in range(5):
        parent = make_run(tmp_path, f"p{seed}", seed, 1.0 + seed, 1.0)
        more = {"forked_from": {"run": str(parent), "step": 5}} if seed == 0 else {}
        more |= {"status": "diverged"} if seed == 4 else {}
        make_run(tmp_path, f"f{seed}", seed, 1.5 + seed + 0.01 * seed, 10.0, **more)
    arguments = ["compare", tmp_path, "--metric", "kid/mmd:min", "--paired"]
    (row,) = json.loads(command(*arguments, "--json"))["paired"]
    assert (row["pairs"], row["by"], row["left_out"]) == (4, "seed", 1)
    assert row["effect"] == pytest.approx(0.515)
    assert "1 left out where a run diverged" in " ".join(command(*arguments).split())


def test_a_fork_with_other_settings_is_no_run_of_them(tmp_path):
    parent = make_run(tmp_path, "parent", 0, 1.0, 1.0)
    make_run(tmp_path, "true", 0, 3.0, 10.0)
    settings = {"constraints.gradient_penalty.weight": 10.0}
    make_run(tmp_path, "z", 0, 2.0, 10.0, forked_from={"run": str(parent), "step": 5, "settings": settings})
    kept = {run.path.name for one in ganlab.compare([tmp_path]).configurations for run in one.runs}
    assert kept == {"parent", "true"}
    said = " ".join(command("compare", tmp_path / "parent", tmp_path / "z", "--all").split())
    assert "z at step 5 (constraints.gradient_penalty.weight: now 10.0)" in said
    assert "z !" in command("runs", "list", tmp_path)
