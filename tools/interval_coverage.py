"""Measures how often the intervals of `ganlab compare` cover the truth: the tables of docs/comparing.md.

python tools/interval_coverage.py [--trials 4000]
"""

from __future__ import annotations

import argparse
import functools
import math
from collections.abc import Callable

import numpy as np

from ganlab.comparing.statistics import (
    BOOTSTRAP_FROM,
    IQM_FROM,
    bootstrap_intervals,
    interquartile_mean,
    newcombe_interval,
    student_interval,
)

Draw = Callable[[np.random.Generator, int], np.ndarray]

COUNTS = (3, 5, 8, 10, 20, 40)

# Shapes that figures over seeds take: symmetric, with a tail as distances have, and whole numbers with a limit.
SHAPES: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "lognormal (0.5)": lambda rng, n: rng.lognormal(sigma=0.5, size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "modes of 8": lambda rng, n: np.minimum(8.0, 6 + rng.poisson(1.5, size=n)),
}

# P(X > Y) of two normal distributions, and the ratio of their deviations.
CONTRASTS = ((0.5, 1.0), (0.75, 1.0), (0.9, 1.0), (0.97, 1.0), (0.9, 4.0))


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=4000)
    trials = parser.parse_args().trials
    print(f"Mean, coverage in percent of Student's | bootstrap's interval ({trials} trials each):\n")
    _table(
        [f"n = {n}" for n in COUNTS],
        {name: [_of_means(draw, n, trials) for n in COUNTS] for name, draw in SHAPES.items()},
    )
    enough = [n for n in COUNTS if n >= IQM_FROM]
    print("\nInterquartile mean, coverage of the bootstrap's interval:\n")
    _table(
        [f"n = {n}" for n in enough], {name: [_of_middles(d, n, trials) for n in enough] for name, d in SHAPES.items()}
    )
    print("\nProbability of improvement, coverage of Newcombe's | bootstrap's interval:\n")
    _table(
        [f"n = {n}" for n in COUNTS],
        {
            f"P = {probability}, deviations 1 : {ratio:g}": [
                _of_improvements(probability, ratio, n, trials) for n in COUNTS
            ]
            for probability, ratio in CONTRASTS
        },
    )


def _of_means(draw: Draw, n: int, trials: int) -> str:
    rng, mean = np.random.default_rng(n), _truth(draw)
    samples = [draw(rng, n) for _ in range(trials)]
    bootstrap = _coverage([bootstrap_intervals(sample)[0] for sample in samples], mean)
    if n >= BOOTSTRAP_FROM:
        return f"- | {bootstrap}"
    return f"{_coverage([student_interval(sample) for sample in samples], mean)} | {bootstrap}"


def _of_middles(draw: Draw, n: int, trials: int) -> str:
    rng = np.random.default_rng(n)
    # The estimand of the interquartile mean of n runs: its own mean over many samples of n.
    return _coverage([bootstrap_intervals(draw(rng, n))[1] for _ in range(trials)], _middle(draw, n))


def _of_improvements(probability: float, ratio: float, n: int, trials: int) -> str:
    from scipy.stats import norm

    rng, shift = np.random.default_rng(n), norm.ppf(probability) * math.hypot(1, ratio)
    newcombe, bootstrap = [], []
    for _ in range(trials):
        wins = (rng.normal(shift, 1, n)[:, None] > rng.normal(0, ratio, n)).astype(float)
        newcombe.append(newcombe_interval(float(wins.mean()), n, n))
        mine, theirs = (rng.multinomial(n, np.full(n, 1 / n), size=1000) for _ in range(2))
        bootstrap.append(np.quantile(((mine @ wins) * theirs).sum(axis=1) / n**2, (0.025, 0.975)))
    return f"{_coverage(newcombe, probability)} | {_coverage(bootstrap, probability)}"


def _coverage(intervals: list, truth: float) -> str:
    # Rounding must not separate the end of an interval from a value that it equals.
    return f"{100 * np.mean([low - 1e-12 <= truth <= high + 1e-12 for low, high in intervals]):.0f}"


@functools.cache
def _truth(draw: Draw) -> float:
    return float(draw(np.random.default_rng(1), 4_000_000).mean())


@functools.cache
def _middle(draw: Draw, n: int) -> float:
    rng = np.random.default_rng(1)
    return float(np.mean([interquartile_mean(draw(rng, n)) for _ in range(100_000)]))


def _table(heads: list[str], rows: dict[str, list[str]]) -> None:
    print("| | " + " | ".join(heads) + " |")
    print("|---" * (len(heads) + 1) + "|")
    for name, cells in rows.items():
        print(f"| {name} | " + " | ".join(cell.replace(" | ", ", ") for cell in cells) + " |")


if __name__ == "__main__":
    main()
