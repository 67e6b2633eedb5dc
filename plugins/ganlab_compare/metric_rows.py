"""Metrics of a run over its logged rows, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ganlab.telemetry import read_metrics


@dataclass(frozen=True)
class Series:
    """One metric of one run over its logged rows.

    Attributes:
        steps: `(rows,)` int64, generator updates done at the rows that have the metric.
        values: `(rows,)` float64, the reduced values.
        spreads: `(rows,)` float64, the largest less the smallest value of a replica; NaN in rows with fewer than two
            replicas.
    """

    steps: np.ndarray
    values: np.ndarray
    spreads: np.ndarray


# What reads metrics of a metrics.jsonl, like `read_series`.
Reader = Callable[[Path, Collection[str]], dict[str, Series]]


def read_series(path: Path, tags: Collection[str]) -> dict[str, Series]:
    """Reads metrics of a run.

    Args:
        path: Its metrics.jsonl; without one, there are no rows.
        tags: The metrics to read.

    Returns:
        The series by tag, for the tags that the file has. An unfinished last line is left out.

    Raises:
        RunError: The file cannot be read or has an invalid line.
    """
    by_tag: dict[str, list[tuple[int, float, float]]] = {}
    for record in read_metrics(path, tags):
        by_tag.setdefault(record.tag, []).append((record.step, record.reduced, _spread(record.replicas)))
    return {tag: Series(*map(np.array, zip(*rows, strict=True))) for tag, rows in by_tag.items()}


def _spread(replicas: Sequence[float]) -> float:
    return max(replicas) - min(replicas) if len(replicas) > 1 else np.nan
