"""Compares runs: configurations side by side, with the noise estimated from seeds. Never imports TensorFlow."""

from ganlab.comparing.comparison import Comparison, compare
from ganlab.comparing.configurations import Configuration
from ganlab.comparing.curves import Curve
from ganlab.comparing.loaded_runs import RunSummary
from ganlab.comparing.metrics import Metric
from ganlab.comparing.statistics import Estimate, Improvement

__all__ = ["Comparison", "Configuration", "Curve", "Estimate", "Improvement", "Metric", "RunSummary", "compare"]
