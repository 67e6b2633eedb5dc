"""Compares runs: configurations side by side, with the noise estimated from seeds. Never imports TensorFlow."""

from ganlab.comparing.comparison import Comparison, compare, compare_runs
from ganlab.comparing.configurations import Configuration
from ganlab.comparing.curves import Curve, read_curves
from ganlab.comparing.loaded_runs import RunSummary, read_run
from ganlab.comparing.metric_rows import Reader, Series, read_series
from ganlab.comparing.metrics import Metric, default_metrics, named_metrics
from ganlab.comparing.statistics import Estimate, Improvement
from ganlab.comparing.writing import as_data, to_csv

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
    "compare",
    "compare_runs",
    "default_metrics",
    "named_metrics",
    "read_curves",
    "read_run",
    "read_series",
    "to_csv",
]
