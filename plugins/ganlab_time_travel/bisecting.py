"""Finds the first step of a run at which a condition on a metric holds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from ganlab import Record
from ganlab.commands import one_meant
from ganlab.engine import Rewound
from ganlab.errors import RunError, nearest
from ganlab.files import line
from ganlab.runs import RunDirectory
from ganlab_time_travel.conditions import Condition

# Measured when an evaluation or a diagnostic looks, not in every iteration.
_NOW_AND_THEN = ("evaluation/", "diagnostics/")


@dataclass(frozen=True)
class Onset:
    """Where a condition begins to hold.

    Attributes:
        step: The first step, generator updates done.
        exact: Whether it is an iteration, and none of the row before it meets the condition; false for figures of
            evaluations and diagnostics, which only some rows have.
        after: The last row before it.
        before: The metrics of the iteration before, by tag; empty at the first step.
        now: Those of the iteration.
    """

    step: int
    exact: bool
    after: int
    before: dict[str, float]
    now: dict[str, float]

    @property
    def changes(self) -> list[tuple[str, float, float]]:
        """The metrics with their values before and now, the largest relative change first."""
        shared = [(tag, self.before[tag], value) for tag, value in self.now.items() if tag in self.before]
        return sorted(shared, key=lambda entry: -_change(entry[1], entry[2]))


def bisect(run: RunDirectory, condition: Condition, say: Callable[[str], None] = lambda text: None) -> Onset | None:
    """`ganlab.Run.bisect`, which has the documentation; `say` takes sentences about what may differ.

    It goes back row by row until none of a row's iterations meets the condition. Rows are means over
    `experiment.log_every` iterations, so a condition that holds in no row is not found.
    """
    rows: dict[int, float] = {}
    tags: set[str] = set()
    before: dict[str, float] = {}
    latest: dict[str, float] = {}
    hit, after, at = None, 0, -1
    for record in run.iter_metrics():
        if record.step != at:
            if hit is not None:
                break
            before, latest, at = {**before, **latest}, {}, record.step
        tags.add(record.tag)
        latest[record.tag] = record.reduced
        if record.tag == condition.metric:
            rows[record.step] = record.reduced
            if condition.holds(record.reduced):
                hit = record.step
            else:
                after = record.step
    if not rows:
        if found := one_meant(condition.metric, tags, f"The metric {condition.metric!r}"):
            return bisect(run, replace(condition, metric=found), say)
        raise RunError(
            f"{line(run.path)} has no metric {line(condition.metric)!r}.{nearest(condition.metric, tags)} "
            "metrics.jsonl has the names."
        )
    if hit is None:
        return None
    if condition.metric.startswith(_NOW_AND_THEN) or condition.metric.endswith("/lipschitz_bound"):
        return Onset(hit, False, after, before, latest)
    # A row is a mean, so single iterations of the row before may meet the condition already, and of the one before it.
    logged = [0, *rows]
    last = logged.index(hit)
    onset = _first(run, condition, logged[last - 1], hit, say)
    while onset is not None and (last := last - 1) > 0:
        earlier = _first(run, condition, logged[last - 1], logged[last], say)
        if earlier is None:
            break
        onset = earlier
    # The mean over the row's iterations may meet it though none of them does, for example `!=`.
    return onset or Onset(hit, False, after, before, latest)


def _first(run: RunDirectory, condition: Condition, after: int, until: int, say: Callable[[str], None]) -> Onset | None:
    """The first iteration after one step, up to another, that meets a condition."""
    rewound = Rewound(run, after, until, say)
    earlier: dict[str, float] = {}
    for row in rewound.iterations(until):
        values = _values(row)
        step = row[0].step
        if step > after and condition.metric in values and condition.holds(values[condition.metric]):
            return Onset(step, True, after, earlier, values)
        earlier |= values
    return None


def _values(row: list[Record]) -> dict[str, float]:
    return {record.tag: record.reduced for record in row}


def _change(before: float, now: float) -> float:
    if not (math.isfinite(before) and math.isfinite(now)):
        return 0.0 if before == now or (math.isnan(before) and math.isnan(now)) else math.inf
    return abs(now - before) / max(abs(before), abs(now), 1e-12)
