"""Compares runs: configurations side by side, with the noise estimated from seeds. Never imports TensorFlow."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ganlab_compare.axes import scale_of
    from ganlab_compare.brief import best_first, main_metric, short_names
    from ganlab_compare.comparison import Comparison, compare, compare_runs
    from ganlab_compare.configurations import Configuration
    from ganlab_compare.curves import Curve, read_curves
    from ganlab_compare.doors import markdown_escaped
    from ganlab_compare.labels import shortened, without_common
    from ganlab_compare.loaded_runs import RunSummary, read_run
    from ganlab_compare.metric_rows import Reader, Series, read_series
    from ganlab_compare.metrics import Metric, default_metrics, named_metrics
    from ganlab_compare.pages import page
    from ganlab_compare.report import to_html
    from ganlab_compare.samples import embedded, newest
    from ganlab_compare.statistics import Estimate, Improvement
    from ganlab_compare.writing import as_data, to_csv

# Loaded when first used, so that the command's help needs no numpy.
_LAZY = {
    "axes": ["scale_of"],
    "brief": ["best_first", "main_metric", "short_names"],
    "comparison": ["Comparison", "compare", "compare_runs"],
    "configurations": ["Configuration"],
    "curves": ["Curve", "read_curves"],
    "doors": ["markdown_escaped"],
    "labels": ["shortened", "without_common"],
    "loaded_runs": ["RunSummary", "read_run"],
    "metric_rows": ["Reader", "Series", "read_series"],
    "metrics": ["Metric", "default_metrics", "named_metrics"],
    "pages": ["page"],
    "report": ["to_html"],
    "samples": ["embedded", "newest"],
    "statistics": ["Estimate", "Improvement"],
    "writing": ["as_data", "to_csv"],
}


def __getattr__(name: str) -> Any:
    for module, names in _LAZY.items():
        if name in names:
            return getattr(importlib.import_module(f"ganlab_compare.{module}"), name)
    raise AttributeError(f"module 'ganlab_compare' has no attribute {name!r}")


__all__ = [
    "Comparison",
    "Configuration",
    "Curve",
    "Estimate",
    "Improvement",
    "Metric",
    "Reader",
    "RunSummary",
    "Series",
    "as_data",
    "best_first",
    "compare",
    "compare_runs",
    "default_metrics",
    "embedded",
    "main_metric",
    "markdown_escaped",
    "named_metrics",
    "newest",
    "page",
    "read_curves",
    "read_run",
    "read_series",
    "scale_of",
    "short_names",
    "shortened",
    "to_csv",
    "to_html",
    "without_common",
]
