"""Paired effects: runs that share a seed, or a run and its fork, differ by their settings alone."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ganlab.commands import counted
from ganlab.errors import RunError
from ganlab.runs import RunDirectory
from ganlab_compare.comparison import Comparison
from ganlab_compare.configurations import Configuration
from ganlab_compare.loaded_runs import RunSummary
from ganlab_compare.statistics import student_half, student_interval
from ganlab_compare.warnings import last_value


@dataclass(frozen=True)
class Paired:
    """The mean difference between a configuration and another, run by run and at large.

    Attributes:
        against: The other configuration's label.
        pairs: How many pairs of runs there are.
        by: "seed" if the runs of a pair share their seed, "fork" if in each one is the fork of the other.
        effect: The mean of the differences within pairs, this configuration's value less the other's.
        low: The lower end of its 95% interval, Student's over the pairs; of two pairs, or where all differ by the same,
            of the range of their differences; None for one pair.
        high: The upper end.
        unpaired_low: The lower end of the interval of the same runs' difference of means, as if nothing were shared:
            Student's with the degrees of freedom of the smaller side, which is wider than Welch's.
        unpaired_high: The upper end.
        gain: The variance of the difference of means over that of the paired mean: above one, pairing narrows the
            interval; None for one pair, infinity if all pairs differ by the same.
        method: "student" or "range"; None for one pair.
        left_out: How many pairs more there are, of which a run diverged or lacks the metric.
    """

    against: str
    pairs: int
    by: str
    effect: float
    low: float | None
    high: float | None
    unpaired_low: float | None
    unpaired_high: float | None
    gain: float | None
    method: Literal["student", "range"] | None = None
    left_out: int = 0


def paired(comparison: Comparison, against: str | None = None) -> dict[tuple[str, str], Paired]:
    """The paired effects of a comparison, by (label, tag).

    Args:
        comparison: The comparison.
        against: The label of the configuration that all others are paired with; None for the first one.

    Raises:
        RunError: No two runs of different configurations share a seed or are fork and parent.
    """
    reference = next((one for one in comparison.configurations if one.label == against), comparison.configurations[0])
    effects = {
        (one.label, metric.tag): effect
        for one in comparison.configurations
        if one is not reference
        for metric in comparison.metrics
        if (effect := _effect(one, reference, metric.tag)) is not None
    }
    if not effects:
        raise RunError(
            f"--paired: no run shares its seed with one run of {reference.label} alone, or is a fork of one or its "
            "parent. Train the same seeds of each configuration, let --by pool no runs of one seed, or fork runs: "
            "ganlab fork RUN --at STEP --param NAME=VALUE."
        )
    return effects


def sentences(effects: Mapping[tuple[str, str], Paired]) -> Iterator[str]:
    """Each effect in a sentence."""
    alone = ", taken alone" if len(effects) > 1 else ""  # no interval is widened for the others
    for (label, tag), one in effects.items():
        runs = f"{counted(one.pairs, 'pair')} of {'the same seed' if one.by == 'seed' else 'fork and parent'}"
        runs += f", {one.left_out} left out where a run diverged or lacks it" if one.left_out else ""
        difference = f"{tag}: {label} less {one.against} is {one.effect:+.4g}"
        if one.low is None or one.high is None:
            yield f"{difference} ({runs}, so chance is unknown)."
        elif one.method == "range":
            yield f"{difference}, range [{one.low:.4g}, {one.high:.4g}] ({runs}, so chance is unknown)."
        else:
            sure = f"beyond chance{alone}" if one.low > 0 or one.high < 0 else "may be chance"
            yield (
                f"{difference} [{one.low:.4g}, {one.high:.4g}] ({runs}; {sure}). Without pairing: "
                f"[{one.unpaired_low:.4g}, {one.unpaired_high:.4g}]; pairing divides the variance by {one.gain:.3g}."
            )


def _effect(one: Configuration, other: Configuration, tag: str) -> Paired | None:
    pairs = _forks(one.runs, other.runs)
    forked = {run.path for pair in pairs for run in pair}
    seeds = [pair for pair in _of_one_seed(one.runs, other.runs) if forked.isdisjoint(run.path for run in pair)]
    pairs, by = [*pairs, *seeds], "seed" if seeds else "fork"
    values = np.array([[last_value(run, tag) for run in pair] for pair in pairs], np.float64).reshape(-1, 2)
    values = values[np.isfinite(values).all(axis=1)]  # a value that a run lacks is NaN
    with np.errstate(over="ignore", invalid="ignore"):  # a difference beyond float64 is infinite
        effect = _of_pairs(values, other.label, by)
    return effect and replace(effect, left_out=len(pairs) - len(values))


def _of_pairs(values: np.ndarray, against: str, by: str) -> Paired | None:
    n = len(values)
    if not n:
        return None
    differences = values[:, 0] - values[:, 1]
    effect = float(differences.mean())
    if n == 1:
        return Paired(against, 1, by, effect, None, None, None, None, None)
    ends = float(differences.min()), float(differences.max())
    paired_variance = float(differences.var(ddof=1)) if ends[0] < ends[1] else 0.0
    unpaired_variance = float(values.var(axis=0, ddof=1).sum())
    wide = student_half(n) * math.sqrt(unpaired_variance / n)
    unpaired = effect - wide, effect + wide
    gain = unpaired_variance / paired_variance if paired_variance else math.inf
    if n == 2 or not paired_variance:
        return Paired(against, n, by, effect, *ends, *unpaired, gain, "range")
    return Paired(against, n, by, effect, *student_interval(differences), *unpaired, gain, "student")


def _of_one_seed(mine: Sequence[RunSummary], theirs: Sequence[RunSummary]) -> list[tuple[RunSummary, RunSummary]]:
    """Pairs of one seed; a seed that a side has several runs of is left out, since any could be meant."""
    sides = []
    for runs in (mine, theirs):
        by_seed: dict[int, list[RunSummary]] = defaultdict(list)
        for run in runs:
            if run.seed is not None:
                by_seed[run.seed].append(run)
        sides.append({seed: alike[0] for seed, alike in by_seed.items() if len(alike) == 1})
    return [(sides[0][seed], sides[1][seed]) for seed in sorted(sides[0].keys() & sides[1].keys())]


def _forks(mine: Sequence[RunSummary], theirs: Sequence[RunSummary]) -> list[tuple[RunSummary, RunSummary]]:
    """Pairs of a run and its fork, or of two forks of one run at one step."""
    pairs = []
    for a in mine:
        for b in theirs:
            (from_a, here_a), (from_b, here_b) = _origin(a), _origin(b)
            if here_b == from_a[0] or here_a == from_b[0] or (from_a[0] and from_a == from_b):
                pairs.append((a, b))
    return pairs


def _origin(run: RunSummary) -> tuple[tuple[str, int], str]:
    """The run and the step that this one was forked from, and its own path; an empty path for none."""
    forked = RunDirectory(run.path).info.get("forked_from")
    path = os.path.realpath(run.path)
    if not forked:
        return ("", 0), path
    recorded = forked["run"]
    if not os.path.isdir(recorded):  # moved together
        recorded = os.path.join(os.path.dirname(path), os.path.basename(recorded))
    return (os.path.realpath(recorded), forked["step"]), path
