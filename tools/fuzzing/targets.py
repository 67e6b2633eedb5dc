"""The fuzz targets, and how one is run."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from fuzzing import archives, benchmarks, checkpoints, events, facts, gin, metrics, names, runs, sweeps, tab
from fuzzing import settings as odd_settings

# Processor time of one input; the first of a target also imports what it needs.
LONGEST_SECONDS = 20


@dataclass(frozen=True)
class Target:
    """A reader and its inputs.

    Attributes:
        inputs: Draws one input.
        check: Reads it in an empty folder; any exception is a finding.
    """

    inputs: SearchStrategy[Any]
    check: Callable[[Any, Path], None]


TARGETS = {
    "gin": Target(gin.sources(), gin.check),
    "metrics": Target(metrics.files(), metrics.check),
    "runs": Target(runs.folders(), runs.check),
    "events": Target(events.files(), events.check),
    "checkpoints": Target(checkpoints.folders(), checkpoints.check),
    "archives": Target(archives.files(), archives.check),
    "names": Target(names.texts(), names.check),
    "settings": Target(odd_settings.files(), odd_settings.check),
    "sweeps": Target(sweeps.files(), sweeps.check),
    "benchmarks": Target(benchmarks.files(), benchmarks.check),
    "references": Target(benchmarks.references(), benchmarks.check_reference),
    "facts": Target(facts.files(), facts.check),
    "moving": Target(archives.moving(), archives.check_moving),
    "tab": Target(tab.requests(), tab.check),
}


def examples(name: str, count: int, *, number: int | None = None) -> int:
    """Runs a target; a finding is raised with the smallest input that shows it.

    Args:
        name: A name in `TARGETS`.
        count: The number of inputs.
        number: The seed; None for the same inputs every time.

    Returns:
        The number of inputs that were tried; fewer if no more differ.
    """
    target, tried = TARGETS[name], 0

    @settings(
        max_examples=count,
        derandomize=number is None,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(target.inputs)
    def run(drawn: Any) -> None:
        nonlocal tried
        tried += 1
        began = time.process_time()
        with tempfile.TemporaryDirectory(prefix="ganlab-fuzz-") as folder:
            target.check(drawn, Path(folder))
        took = time.process_time() - began
        assert took < LONGEST_SECONDS, f"it took {took:.0f} s"

    (run if number is None else seed(number)(run))()
    return tried
