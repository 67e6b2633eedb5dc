"""Names of runs contain the settings that differ, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from ganlab_tensorboard.run_names import run_names

from ganlab.runs.naming import described, differing

GP = {"constraints": "gradient_penalty", "constraints.gradient_penalty.weight": 10.0, "experiment.batch_size": 64}
SN = {"constraints": "spectral_norm", "constraints.spectral_norm.power_iterations": 1, "experiment.batch_size": 64}


def seeded(settings, seed):
    return {**settings, "experiment.seed": seed}


@pytest.mark.parametrize(
    ("tables", "names"),
    [
        ([seeded(GP, 0), seeded(GP, 1)], []),
        # No two runs that have a weight differ in it.
        ([GP, SN], ["constraints"]),
        ([GP, {**GP, "constraints.gradient_penalty.weight": 1.0}, SN], ["constraints", [*GP][1]]),
        ([{**GP, "experiment.batch_size": 32}, SN], ["constraints", "experiment.batch_size"]),
        # A part that both have, and a parameter of it that one leaves at None.
        ([{**GP, "constraints.gradient_penalty.limit": 2.0}, GP], ["constraints.gradient_penalty.limit"]),
        # The same where it is the part's only setting.
        ([{"loss": "hinge", "losses.hinge.limit": 2}, {"loss": "hinge"}], ["losses.hinge.limit"]),
        ([{"experiment.batch_size": 64}, GP], ["constraints"]),
        ([{}, GP], []),  # the first run's settings are unknown
        ([{"experiment.jit": True}, {"experiment.jit": 1}], ["experiment.jit"]),
        ([{"experiment.steps": 10}, {"experiment.steps": 10.0}], []),
    ],
)
def test_differing_settings_of_runs(tables, names):
    assert differing(tables) == names


def test_descriptions_are_concise():
    names = ["constraints", "constraints.gradient_penalty.weight", "critic_optimizer", "experiment.batch_size"]
    assert described(GP, names) == "gradient_penalty.weight=10 batch_size=64"
    assert described({**SN, "critic_optimizer": "adam"}, names) == "spectral_norm critic_optimizer=adam batch_size=64"
    assert described({"experiment.batch_size": 64}, names[:1]) == "unconstrained"
    assert described({"constraints": "r1, spectral_norm"}, names) == "r1+spectral_norm"
    assert described({}, names) == ""


def unnamed(folder, seed, digits, time="120000"):
    return Path(f"/runs/{folder}/20260801-{time}-s{seed}-{digits}")


def test_unnamed_runs_are_named_by_differing_settings():
    runs = {
        unnamed("digits", 0, "aaaa"): seeded(GP, 0),
        unnamed("digits", 1, "bbbb"): seeded(GP, 1),
        unnamed("digits", 0, "cccc"): seeded(SN, 0),
        unnamed("ring", 0, "dddd"): seeded({**GP, "dataset": "gaussian_ring"}, 0),
        Path("/runs/ring/lazy"): seeded(GP, 0),
    }
    names = ["digits gradient_penalty s0", "digits gradient_penalty s1", "digits spectral_norm s0", "ring s0"]
    assert set(run_names(runs).values()) == {*names, "ring lazy"}
    # Settings that all share are left out.
    digits = {path: settings for path, settings in runs.items() if path.parent.name == "digits"}
    assert set(run_names(digits).values()) == {"gradient_penalty s0", "gradient_penalty s1", "spectral_norm s0"}
    alone = unnamed("digits", 3, "aaaa")
    assert run_names({alone: {}}) == {alone: "digits s3"}
    assert run_names({}) == {}


def test_trials_of_a_sweep_are_named_by_their_folders():
    runs = {Path(f"/runs/sweep/gradient_penalty.weight={w}/s{s}"): seeded(GP, s) for w in (1, 10) for s in (0, 1)}
    assert sorted(run_names(runs).values()) == [f"gradient_penalty.weight={w} s{s}" for w in (1, 10) for s in (0, 1)]


def test_run_names_are_unique_stable_and_valid_folder_names():
    first, second = unnamed("digits", 0, "aaaa"), unnamed("digits", 0, "bbbb", "130000")
    assert run_names({first: GP, second: GP}) == {first: "digits s0 aaaa", second: "digits s0 bbbb"}
    given = run_names({first: GP})
    assert run_names({first: GP, second: GP}, given) == {first: "digits s0", second: "digits s0 bbbb"}
    assert run_names({second: SN}, given) == {second: "digits s0"}
    deep = [Path("/", "ä" * 100, *("b" * 100,) * 3, end) for end in ("s0", "s1")]
    names = run_names(dict.fromkeys([*deep, Path("/c/s0")], GP))
    assert len(set(names.values())) == 3
    assert max(len(name.encode()) for name in names.values()) < 256
    loud = {**GP, **{f"experiment.name_{i}": "x/" * 10 for i in range(9)}}
    quiet = {**GP, **{f"experiment.name_{i}": "y" for i in range(9)}}
    for name in run_names({first: loud, second: quiet}).values():
        assert "/" not in name
        assert len(name) <= 80 + len(" s0")
