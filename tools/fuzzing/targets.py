"""What is fuzzed, and how one target is run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from fuzzing import archives, checkpoints, events, gin, metrics, names, runs
from fuzzing import settings as odd_settings


@dataclass(frozen=True)
class Target:
    """A reader and the input that it is given.

    Attributes:
        inputs: Draws one input.
        check: Reads it in an empty folder; what it raises is a finding.
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
}


def examples(name: str, count: int, *, number: int | None = None) -> int:
    """Runs a target; a finding is raised with the smallest input that shows it.

    Args:
        name: Of `TARGETS`.
        count: How many inputs.
        number: Decides which; None for the same ones every time.

    Returns:
        How many inputs there were; fewer where there are no more that differ.
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
        with tempfile.TemporaryDirectory(prefix="ganlab-fuzz-") as folder:
            target.check(drawn, Path(folder))

    (run if number is None else seed(number)(run))()
    return tried
