"""Makes a row of comparisons: what passed and how narrowly, or what failed and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ganlab_verify.cases import Finding, departure
from ganlab_verify.comparing import Measure, first_departure
from ganlab_verify.report import Row
from ganlab_verify.trace import Trace

Measured = Sequence[tuple[str, Measure]]


def passed(check: str, measures: Measured, notes: Sequence[str] = ()) -> Row:
    """The row of comparisons without a departure; `not run` if nothing could be compared.

    Args:
        check: The check's name.
        measures: Every comparison, with the training that it belongs to in words.
        notes: Further sentences.
    """
    judged = [(where, m, m.distance / m.limit) for where, m in measures if m.limit is not None]
    data: dict[str, Any] = {"worst": _worst(measures)}
    # Nothing is proven if not even the gradients of the first iteration can be compared.
    if not judged or any(m.limit is None and m.kind == "gradient" and m.iteration == 1 for _, m in measures):
        return Row(check, "not run", None, None, _chaos(measures), data)
    where, nearest, _ = max(judged, key=lambda item: item[2])
    line = f"Nearest to a limit: {nearest.title} at iteration {nearest.iteration}, {where}."
    notes = [*([_chaos(measures)] if any(m.limit is None for _, m in measures) else []), *notes]
    data["notes"] = notes
    return Row(check, "passed", nearest.distance, nearest.limit, line, data)


def failed(check: str, finding: Finding, measures: Sequence[Measure], where: str, **data: Any) -> Row:
    """The row of a departure that was explained."""
    first = next((m for m in measures if m.departs), None)
    data |= {
        "cause": finding.cause,
        "where": finding.where,
        "iteration": finding.iteration,
        "size": finding.size,
        "departures": sorted({m.title for m in measures if m.departs}),
    }
    limit = first.limit if first is not None else 0.0
    return Row(check, "failed", finding.size, limit, f"{where[0].upper()}{where[1:]}: {finding.words}", data)


def departed(check: str, measures: Sequence[Measure], where: str, cause: str, means: str) -> Row | None:
    """The row of the first departure, with its cause and what that means; None if nothing departs."""
    first = first_departure(measures)
    if first is None:
        return None
    words = f"{departure(first)}. {means}"
    return failed(check, Finding(cause, first.group, first.iteration, first.distance, words), measures, where)


def diverged(check: str, trace: Trace, by: str) -> Row | None:
    """The row of an experiment whose numbers are not finite even on one device; None if they are finite."""
    values = np.stack([iteration.metrics for iteration in trace.iterations])
    bad = np.argwhere(~np.isfinite(values))
    if not len(bad):
        return None
    step, _, metric = bad[0]
    detail = (
        f"By {by} on one device, {trace.tags[metric]} is not finite at iteration {step + 1}: training diverges, and "
        "there is nothing to compare. Lower the learning rates."
    )
    return Row(check, "failed", math.inf, None, detail, {"cause": "diverged", "where": trace.tags[metric]})


def _worst(measures: Measured) -> dict[str, dict[str, list[float]]]:
    """The distance nearest to its limit, and the limit, for every training and every kind of number."""
    worst: dict[str, dict[str, list[float]]] = {}
    for where, m in measures:
        if m.limit is None:
            continue
        by_kind = worst.setdefault(where, {})
        kind = "gradients applied" if m.kind == "applied" else f"{m.kind}s"
        if kind not in by_kind or m.distance / m.limit > by_kind[kind][0] / by_kind[kind][1]:
            by_kind[kind] = [m.distance, m.limit]
    return worst


def _chaos(measures: Measured) -> str:
    vague = [(where, m) for where, m in measures if m.limit is None]
    where, first = min(vague, key=lambda pair: pair[1].iteration)
    return (
        f"From iteration {first.iteration} on {first.title} is too chaotic to compare ({where.partition(' on ')[0]}): "
        "a change of the weights by 1e-7 alone moves it as far as a mistake would."
    )
