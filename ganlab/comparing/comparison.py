"""Comparing runs: one row a configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ganlab.comparing.configurations import Configuration
from ganlab.comparing.reading import Scalar
from ganlab.comparing.statistics import Estimate, Improvement


@dataclass(frozen=True)
class Metric:
    """A metric that is compared.

    Attributes:
        tag: Its name, as in metrics.jsonl.
        direction: Which values are better; None where that is not known: then it has no best and no improvement.
    """

    tag: str
    direction: Literal["max", "min"] | None


@dataclass(frozen=True)
class Comparison:
    """Configurations side by side.

    Attributes:
        configurations: The rows.
        differing: The settings in which they differ, by full name: the columns.
        common: The settings that are the same wherever they apply.
        metrics: What is compared.
        estimates: The mean of the last values by (label, tag); no entry where no run has a finite one.
        best: The mean of the best values by (label, tag); only for metrics with a direction.
        improvement: Over the metric's reference configuration by (label, tag); only for metrics with a direction.
        problems: What a reader has to know, in sentences: runs left out, unfinished, diverged or pooled.
    """

    configurations: tuple[Configuration, ...]
    differing: tuple[str, ...]
    common: dict[str, Scalar]
    metrics: tuple[Metric, ...]
    estimates: dict[tuple[str, str], Estimate]
    best: dict[tuple[str, str], Estimate]
    improvement: dict[tuple[str, str], Improvement]
    problems: tuple[str, ...]


def compare(
    paths: Sequence[str | Path], *, by: Sequence[str] = (), metrics: Sequence[str] = (), against: str | None = None
) -> Comparison:
    """Compares runs."""
    raise NotImplementedError
