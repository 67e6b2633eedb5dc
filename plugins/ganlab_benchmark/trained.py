"""The figures of a trial, as its run has them."""

from __future__ import annotations

import math

from ganlab.sweeps import COMPLETED, Trial, last_value
from ganlab_benchmark.suite import Figure


def value_of(trial: Trial, figure: Figure) -> float | None:
    """The last value of a figure; None if the trial was not completed or the value is not finite."""
    if trial.status != COMPLETED:
        return None
    value = last_value(trial.run, figure.metric)
    if value is None or not math.isfinite(value):
        return None
    return abs(value) if figure.absolute else value
