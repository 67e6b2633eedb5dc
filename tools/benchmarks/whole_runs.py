"""Whole commands: a sweep of short trials, and a run with evaluations beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.pairs import Figure, Ratio

_TOY = """
experiment.dataset = @datasets.gaussian_ring()
experiment.architecture = @architectures.mlp()
experiment.loss = @losses.wasserstein()
experiment.constraints = [@constraints.gradient_penalty()]
experiment.strategy = @strategies.one_device()
experiment.critic_optimizer = @optimizers.adam()
experiment.generator_optimizer = @optimizers.adam()
experiment.evaluators = [@evaluators.exact_w1()]
experiment.checkpoint_every = 0
experiment.evaluate_every = 0
experiment.log_every = 50
"""
_TRIALS, _TRIAL_SECONDS, _CORES = 50, 5.0, 2
_RUN_SECONDS, _EVALUATIONS, _SAMPLES = 40.0, 8, 1500
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}


def trials(rounds: int) -> list[Ratio | Figure]:
    """A sweep of 50 trials, two at a time, against the seconds that they train; each trial trains about 5 s."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        steps = _steps(here, _TRIAL_SECONDS)
        pairs = []
        for number in range(min(rounds, 2)):
            name = f"sweep-{number}"
            seeds = f"0..{_TRIALS - 1}"
            sweep = ["sweep", "--gin", "toy.gin", "--seeds", seeds, "--jobs", str(_CORES), "--name", name]
            wall = _timed(here, [*sweep, "--param", f"experiment.steps={steps}"])
            trained = [_info(path)["wall_seconds"] for path in here.glob(f"runs/{name}/**/run.json")]
            assert len(trained) == _TRIALS
            pairs.append((wall, sum(trained) / _CORES))
        about = sum(trained) / _TRIALS
    return [
        Ratio(f"{_TRIALS} trials of {about:.1f} s / their training", pairs, 1.20),
        Figure("a trial: what it takes besides its training", pairs[-1][0] * _CORES / _TRIALS - about, "s"),
    ]


def beside(rounds: int) -> list[Ratio | Figure]:
    """Training with evaluations beside it, and in its own process, against none but the last; on one thread."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        steps = _steps(here, _RUN_SECONDS)
        every = f"experiment.checkpoint_every={steps // _EVALUATIONS}"
        often = f"experiment.evaluate_every={steps // _EVALUATIONS}"
        samples = f"evaluators.exact_w1.samples={_SAMPLES}"
        cases = {"none": [every], "beside": [every, often, "experiment.evaluate_beside=True"], "within": [every, often]}
        seconds: dict[str, list[float]] = {name: [] for name in cases}
        for number in range(rounds):
            for name, params in cases.items():
                run = f"{name}-{number}"
                given = [f"experiment.steps={steps}", samples, *params]
                _timed(here, ["run", "--gin", "toy.gin", "--name", run, *(p for q in given for p in ("--param", q))])
                (path,) = here.glob(f"runs/**/{run}/run.json")
                seconds[name].append(float(_info(path)["wall_seconds"]))
        none = seconds["none"]
        about = f"{_EVALUATIONS} evaluations in {none[0]:.0f} s"
        return [
            Ratio(f"{about}, beside / none", list(zip(seconds["beside"], none, strict=True)), 1.02),
            Ratio(f"{about}, in the training process / none", list(zip(seconds["within"], none, strict=True))),
        ]


def _steps(here: Path, seconds: float) -> int:
    """The steps that take about that long, by the time of some."""
    (here / "toy.gin").write_text(_TOY)
    few, many = 200, 1200
    took = {}
    for steps in (few, many):
        _timed(here, ["run", "--gin", "toy.gin", "--name", f"pace-{steps}", "--param", f"experiment.steps={steps}"])
        (path,) = here.glob(f"runs/**/pace-{steps}/run.json")
        took[steps] = float(_info(path)["wall_seconds"])
    return max(20, round(seconds * (many - few) / max(took[many] - took[few], 1e-3)))


def _timed(here: Path, arguments: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "ganlab", *arguments],
        cwd=here,
        env={**os.environ, **_ONE_THREAD},
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.perf_counter() - begun


def _info(path: Path) -> dict:
    return json.loads(path.read_text())
