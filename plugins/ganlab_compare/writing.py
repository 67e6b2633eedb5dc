"""A comparison as data for JSON, and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ganlab.telemetry import to_json
from ganlab_compare.comparison import Comparison
from ganlab_compare.configurations import Configuration


def as_data(comparison: Comparison, *, runs: bool = True) -> dict[str, Any]:
    """The comparison as plain values for `json.dumps`: numbers that are not finite are strings, as in metrics.jsonl.

    Args:
        comparison: The comparison.
        runs: Whether to include each run's fields, which are most of it.
    """
    data: dict[str, Any] = to_json(
        {
            "differing": comparison.differing,
            "common": comparison.common,
            "metrics": [asdict(metric) for metric in comparison.metrics],
            "configurations": [_row(comparison, one, runs) for one in comparison.configurations],
            "leading": comparison.leading,
            "verdicts": comparison.verdicts,
            "problems": comparison.problems,
        }
    )
    return data


def to_csv(comparison: Comparison) -> str:
    """One line per configuration, with plain numbers; unknown values are empty.

    Returns:
        The label, the settings that differ, the counts of runs, of warnings and of runs that were changed midway, time
        and speed, and for each metric `<tag> last` with its interval or range, the method of it, number of runs and
        interquartile mean, `<tag> best` with its interval or range, and `<tag> improvement` with its interval.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    rows = comparison.rows()
    writer.writerow(map(_field, rows[0]))
    writer.writerows(map(_field, row.values()) for row in rows)
    return text.getvalue()


def _field(value: Any) -> Any:
    """A field that no spreadsheet takes for a formula; numbers stay."""
    if isinstance(value, str) and value[:1] in tuple("=+-@\t\r"):
        return f"'{value}"
    return "" if value is None else value


def _row(comparison: Comparison, one: Configuration, runs: bool) -> dict[str, Any]:
    tags = [metric.tag for metric in comparison.metrics]
    groups: dict[str, Mapping[tuple[str, str], Any]] = {
        "last": comparison.estimates,
        "best": comparison.best,
        "improvement": comparison.improvement,
    }
    return {
        "label": one.label,
        "settings": one.settings,
        "wall_seconds": one.wall_seconds,
        "steps_per_second": one.steps_per_second,
        **{
            title: {tag: asdict(values[one.label, tag]) for tag in tags if (one.label, tag) in values}
            for title, values in groups.items()
        },
        "changed": [run.name for run in one.changed],
        "best_before_change": {
            metric.tag: [run.name for run in one.best_before_change(metric.tag)]
            for metric in comparison.metrics
            if metric.direction and one.best_before_change(metric.tag)
        },
        **({"runs": [{**asdict(run), "steps_per_second": run.steps_per_second} for run in one.runs]} if runs else {}),
    }
