"""The short form of a comparison: the best rows, the settings that tell them apart, and one metric."""

from __future__ import annotations

from collections import Counter

from ganlab_compare.comparison import Comparison
from ganlab_compare.configurations import Configuration
from ganlab_compare.labels import short_labels
from ganlab_compare.metrics import Metric


def main_metric(comparison: Comparison) -> Metric | None:
    """The metric that rows are sorted by: the first with a known direction, else the first; None without metrics."""
    known = [metric for metric in comparison.metrics if any(tag == metric.tag for _, tag in comparison.estimates)]
    metrics = known or list(comparison.metrics)
    return next((metric for metric in metrics if metric.direction), metrics[0] if metrics else None)


def best_first(comparison: Comparison) -> tuple[Configuration, ...]:
    """The rows by their mean of the main metric; after them those with diverged runs, and those without a value."""
    metric = main_metric(comparison)
    if metric is None or metric.direction is None:
        return comparison.configurations
    sign = -1 if metric.direction == "max" else 1

    def place(one: Configuration) -> tuple[bool, bool, float]:
        estimate = comparison.estimates.get((one.label, metric.tag))
        return estimate is None, bool(one.diverged), 0.0 if estimate is None else sign * estimate.mean

    return tuple(sorted(comparison.configurations, key=place))


def short_names(comparison: Comparison) -> dict[str, str]:
    """The rows' short labels by their labels; the labels themselves where short ones would be the same."""
    rows = comparison.configurations
    short = short_labels([one.settings for one in rows], comparison.differing)
    often = Counter(short)
    pairs = zip(rows, short, strict=True)
    return {one.label: name if name and often[name] == 1 else one.label for one, name in pairs}
