"""Curves over steps: a configuration's mean with a band that holds all its runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ganlab.runs import METRICS
from ganlab_compare.comparison import Comparison
from ganlab_compare.configurations import Configuration
from ganlab_compare.metric_rows import Reader, read_series

# About as many as a chart can resolve.
_POINTS = 300


@dataclass(frozen=True)
class Curve:
    """One metric of one configuration over steps.

    Attributes:
        label: The configuration's.
        steps: Generator updates done.
        mean: The mean over the runs, one value per step.
        low: The smallest value of a run.
        high: The largest value of a run.
        n: The number of runs at each step.
    """

    label: str
    steps: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    n: tuple[int, ...]


def read_curves(
    comparison: Comparison, tag: str, *, replicas: bool = False, read: Reader = read_series
) -> tuple[Curve, ...]:
    """The curves of a metric, one for each configuration that has it.

    A step is drawn if every run that reached it logged it: nothing is interpolated, and the number of runs falls
    only when one ends, or has a value that is not finite. Long runs are thinned evenly to about 300 steps.

    Args:
        comparison: The comparison whose runs are drawn.
        tag: The metric.
        replicas: Whether to draw the spread of a run's replicas instead, the largest value less the smallest.
        read: Reads metrics of a metrics.jsonl.

    Raises:
        RunError: A file can no longer be read.
    """
    curves = (_curve(one, tag, replicas, read) for one in comparison.configurations)
    return tuple(curve for curve in curves if curve is not None)


def _curve(one: Configuration, tag: str, replicas: bool, read: Reader) -> Curve | None:
    rows = list(_rows(one, tag, replicas, read))
    steps = _shared([steps for steps, _ in rows])
    values = np.full((len(rows), len(steps)), np.nan)
    for line, (logged_steps, logged) in zip(values, rows, strict=True):
        is_logged = np.isin(steps, logged_steps)
        # If a step appears twice, the later row counts.
        line[is_logged] = logged[np.searchsorted(logged_steps, steps[is_logged], side="right") - 1]
    n = np.isfinite(values).sum(axis=0)
    values, steps, n = values[:, n > 0], steps[n > 0], n[n > 0]
    if not len(steps):
        return None
    finite = np.isfinite(values)
    low = np.where(finite, values, np.inf).min(axis=0)
    high = np.where(finite, values, -np.inf).max(axis=0)
    with np.errstate(over="ignore"):  # a sum beyond float64 is clipped
        mean = np.clip(np.where(finite, values, 0.0).sum(axis=0) / n, low, high)
    return Curve(one.label, *(tuple(each.tolist()) for each in (steps, mean, low, high, n)))


def _rows(one: Configuration, tag: str, replicas: bool, read: Reader) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Steps, rising, and values of each run that has any."""
    for run in one.runs:
        series = read(run.path / METRICS, [tag]).get(tag)
        if series is None:
            continue
        values = series.spreads if replicas else series.values
        valid = ~np.isnan(values) if replicas else np.ones(len(values), bool)
        if valid.any():
            yield series.steps[valid], values[valid]


def _shared(steps: list[np.ndarray]) -> np.ndarray:
    """The steps that were logged by every run that reached them, evenly thinned."""
    if not steps:
        return np.zeros(0, np.int64)
    reached = np.sort([run_steps[-1] for run_steps in steps])
    logged, counts = np.unique(np.concatenate([np.unique(run_steps) for run_steps in steps]), return_counts=True)
    # The runs that reached a step are those with their last row there or later.
    shared = logged[counts == len(steps) - np.searchsorted(reached, logged)]
    if len(shared) <= _POINTS:
        return shared
    return shared[np.unique(np.linspace(0, len(shared) - 1, _POINTS).round().astype(int))]
