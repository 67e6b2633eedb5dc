"""Measures how often the interval of `ganlab certify --distance` holds the distance: the table of docs/evaluation.md.

Each trial is a pair of `datasets.min_funnels` of its own, whose distance is known, and a critic trained for a moment.

python tools/distance_coverage.py [--trials 200]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import tempfile
from pathlib import Path

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

_DIMS = (2, 4, 8, 16)
_FUNNELS = 4
_EXPERIMENT = """
include 'paper/min_funnels.gin'
dims = {dims}
datasets.min_funnels.funnels = {funnels}
datasets.min_funnels.funnels_seed = {seed}
experiment.seed = {seed}
experiment.strategy = @strategies.one_device()
experiment.constraints = [@constraints.polar_projection()]
experiment.batch_size = 512
experiment.steps = {steps}
experiment.evaluate_every = 0
experiment.diagnostics = []
architectures.mlp.activation = 'max_min'
optimizers.adam.learning_rate = @schedules.cosine()
schedules.cosine.start = 5e-3
schedules.cosine.end = 0.0
"""


def main() -> None:
    """Prints a row for each dimension."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--steps", type=int, default=1000, help="updates of each critic")
    options = parser.parse_args()
    rows = {
        dims: [_trial(dims, seed, options.steps) for seed in range(i, options.trials, len(_DIMS))]
        for i, dims in enumerate(_DIMS)
    }
    held, all_of_them = 0, 0
    print("dims  trials  held  width / W1: median  largest")
    for dims, trials in rows.items():
        inside, widths = zip(*trials, strict=True) if trials else ((), ())
        print(f"{dims:>4}  {len(trials):>6}  {sum(inside):>4}  {np.median(widths):18.1%}  {max(widths):7.1%}")
        held, all_of_them = held + sum(inside), all_of_them + len(trials)
    low, high = _binomial_interval(held, all_of_them)
    print(f"{held} of {all_of_them} held: {held / all_of_them:.1%}; 95% interval {low:.1%} to {high:.1%}")


def _trial(dims: int, seed: int, steps: int) -> tuple[bool, float]:
    """Whether the interval holds the distance, and its width over it."""
    import ganlab
    from ganlab.cli import cli

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pair.gin"
        file.write_text(_EXPERIMENT.format(dims=dims, funnels=_FUNNELS, seed=seed, steps=steps))
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            cli(["run", "--gin", str(file), "--runs", folder, "--name", "a"], standalone_mode=False)
        interval = ganlab.Run(Path(folder) / "pair" / "a").certify_distance(seconds=1).interval
    truth = ganlab.component("datasets", "min_funnels")(dims=dims, funnels=_FUNNELS, funnels_seed=seed).wasserstein
    ends = f"{interval.lower:.4f} to {interval.upper:.4f} by {interval.lower_by}"
    print(f"{dims} dimensions, seed {seed}: {ends}; W1 is {truth:.4f}", flush=True)
    return interval.lower <= truth <= interval.upper, (interval.upper - interval.lower) / truth


def _binomial_interval(successes: int, trials: int) -> tuple[float, float]:
    """Clopper and Pearson's."""
    from scipy.stats import binomtest

    found = binomtest(successes, trials).proportion_ci(0.95, method="exact")
    return float(found.low), float(found.high)


if __name__ == "__main__":
    main()
