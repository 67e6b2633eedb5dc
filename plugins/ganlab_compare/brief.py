"""The short form of a comparison: the best rows, the settings that tell them apart, and one metric."""

from __future__ import annotations

from collections import Counter

from ganlab_compare.comparison import Comparison, ranked
from ganlab_compare.configurations import Configuration
from ganlab_compare.labels import short_label, shortened, telling, without_common
from ganlab_compare.metrics import Metric


def main_metric(comparison: Comparison) -> Metric | None:
    """The metric that rows are sorted by: the first with a known direction, else the first; None without metrics."""
    return next((one for one in comparison.metrics if one.direction), next(iter(comparison.metrics), None))


def best_first(comparison: Comparison) -> tuple[Configuration, ...]:
    """The rows as `ranked` orders them by the main metric; as they are where it has no direction."""
    metric = main_metric(comparison)
    if metric is None or metric.direction is None:
        return comparison.configurations
    return ranked(comparison.configurations, metric.tag, metric.direction, comparison.estimates)


def short_names(comparison: Comparison) -> dict[str, str]:
    """Short labels by the rows' labels: the values of as few settings as tell rows apart, without what all have.

    Where these are the same for several rows they keep their labels.
    """
    rows = comparison.configurations
    names = shortened(telling([one.settings for one in rows], comparison.differing))
    settings = [{name: one.settings[name] for name in names if name in one.settings} for one in rows]
    paths = without_common([str(value) for of in settings for value in of.values() if "/" in str(value)])
    short = {
        one.label: short_label({name: paths.get(str(value), value) for name, value in of.items()}, names)
        for one, of in zip(rows, settings, strict=True)
    }
    often = Counter(short.values())
    return {label: text if text and often[text] == 1 else label for label, text in short.items()}
