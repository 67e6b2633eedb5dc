"""The rows of a benchmark's tables: a constraint's figures and ranks in each task, measured here or a reference's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ganlab_benchmark.results import DONE
from ganlab_benchmark.statistics import ranks

_DIGITS = 4
# How `ranks_in` and `overview` order constraints, for readers of tables.
RANKS = (
    "1 is best: the order of the mean of a constraint's ranks in the task's columns. A constraint with a trial that "
    "was not completed comes after all others. There is no overall score; rows with more ranks come first, then those "
    "whose ranks sum to less."
)


@dataclass(frozen=True)
class Row:
    """A constraint.

    Attributes:
        name: Its name.
        reference: The file that it is from; empty if it was measured here.
        content: Its part of the results.
    """

    name: str
    reference: str
    content: Mapping[str, Any]

    def task(self, name: str) -> Mapping[str, Any]:
        """Its results in a task."""
        outcome: Mapping[str, Any] = self.content["tasks"].get(name) or _NOTHING
        return outcome


_NOTHING: Mapping[str, Any] = {"status": "none", "reason": "not in these results", "figures": {}}


def rows_of(results: Mapping[str, Any]) -> list[Row]:
    """All constraints, those measured here first."""
    rows = [Row(name, "", content) for name, content in results["constraints"].items()]
    for reference in results.get("references", ()):
        rows += [Row(name, reference["file"], content) for name, content in reference["constraints"].items()]
    return rows


def ranks_in(
    rows: Sequence[Row], task: str, columns: Mapping[str, Any]
) -> tuple[list[dict[str, float]], list[int | None]]:
    """The ranks of a task.

    Args:
        rows: The constraints.
        task: The task's name.
        columns: Its columns, as results have them.

    Returns:
        For each row its ranks by column, and its rank in the task: the order of the mean of its ranks by column, among
        the rows that have a figure in every column that any row has.
    """
    by_column: dict[str, dict[str, float]] = {}
    for key, column in columns.items():
        values = {}
        for number, row in enumerate(rows):
            outcome = row.task(task)
            figure = outcome["figures"].get(key)
            values[str(number)] = None if figure is None else (outcome["status"] == DONE, float(figure["mean"]))
        by_column[key] = ranks(values, column["better"])
    each = [{key: by_column[key][str(n)] for key in columns if str(n) in by_column[key]} for n in range(len(rows))]
    used = [key for key in columns if by_column[key]]
    means = {
        n: math.fsum(row[key] for key in used) / len(used)
        for n, row in enumerate(each)
        if used and set(used) <= set(row)
    }
    return each, [
        1 + sum(other < means[n] for other in means.values()) if n in means else None for n in range(len(rows))
    ]


def overview(results: Mapping[str, Any], rows: Sequence[Row]) -> tuple[dict[str, list[int | None]], list[int]]:
    """The ranks of all rows in each task, and the rows' numbers in the order of the overview (`RANKS`)."""
    places = {name: ranks_in(rows, name, task["columns"])[1] for name, task in results["tasks"].items()}
    known = [[place[n] for place in places.values() if place[n] is not None] for n in range(len(rows))]
    order = sorted(range(len(rows)), key=lambda n: (-len(known[n]), sum(rank or 0 for rank in known[n]), rows[n].name))
    return places, order


def definitions_of(task: Mapping[str, Any]) -> dict[str, str]:
    """The definitions of a task's figures, by their labels without the problem's name."""
    definitions: dict[str, str] = {}
    for column in task["columns"].values():
        about = f"{column['about']} {column['better'].capitalize()} is better.".strip()
        definitions.setdefault(column["label"].partition(",")[0], about)
    return definitions


def problems_of(results: Mapping[str, Any], row: Row) -> list[tuple[str, str, list[str]]]:
    """The reasons why figures of a constraint are missing: status, reason, and the titles of the tasks.

    Where all tasks share a reason, `all tasks` stands for their titles.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for name, task in results["tasks"].items():
        outcome = row.task(name)
        if outcome["reason"]:
            groups.setdefault((outcome["status"], outcome["reason"]), []).append(task["title"])
    every = len(results["tasks"])
    return [
        (status, reason, ["all tasks"] if len(titles) == every else titles)
        for (status, reason), titles in groups.items()
    ]


def figure_text(figure: Mapping[str, Any] | None) -> str:
    """A figure with half its interval's width: `0.7186 ± 0.0123`; with quartiles or a range, `1.62 (1.6 to 1.648)`.

    An interval that ends at a limit has brackets: `7.5 [6.1, 8]`.
    """
    if figure is None:
        return "-"
    mean, kind = f"{figure['mean']:.{_DIGITS}g}", figure.get("interval")
    if figure.get("low") is None or figure.get("high") is None:
        return mean
    low, high = (f"{figure[end]:.{_DIGITS}g}" for end in ("low", "high"))
    if kind == "quartiles":
        return f"{mean} ({low} to {high})"
    if kind == "range":
        return f"{mean} (range {low} to {high})"
    if kind == "limited":
        return f"{mean} [{low}, {high}]"
    return f"{mean} ± {(figure['high'] - figure['low']) / 2:.2g}"


def ordered(rows: Sequence[Row], places: Sequence[int | None]) -> list[int]:
    """The numbers of the rows, the best first, those without a rank last."""
    return sorted(range(len(rows)), key=lambda n: (places[n] is None, places[n] or 0, rows[n].name))
