"""A benchmark's results as a page of Markdown, for documentation and for version control."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ganlab_compare import markdown_escaped as escaped

from ganlab_benchmark.results import DONE
from ganlab_benchmark.rows import (
    RANKS,
    Row,
    definitions_of,
    figure_text,
    ordered,
    overview,
    problems_of,
    ranks_in,
    rows_of,
)

_NAME = re.compile(r"[A-Za-z0-9_./-]+")
_ABSENT = "-"


def markdown(results: Mapping[str, Any]) -> str:
    """Writes results as tables, the best constraint of each task first.

    Args:
        results: The content of results.json. Markup in its texts is escaped.
    """
    rows = rows_of(results)
    parts = [f"# Benchmark: {escaped(results['suite']['title'])}", *_head(results), *_overview(results, rows)]
    for name, task in results["tasks"].items():
        parts += _task(name, task, rows)
    parts += [*_settings(rows), *_problems(results, rows), *_origin(results)]
    return "\n\n".join(parts) + "\n"


def _head(results: Mapping[str, Any]) -> Iterator[str]:
    yield escaped(results["suite"]["about"])
    if not results["complete"]:
        yield "**This benchmark has not ended: some figures are still missing.**"
    for reference in results.get("references", ()):
        yield f"Rows marked “reference” are from {escaped(reference['file'])}, of {escaped(reference['date'])}."
        yield from map(escaped, reference["warnings"])


def _overview(results: Mapping[str, Any], rows: Sequence[Row]) -> Iterator[str]:
    tasks = results["tasks"]
    places, order = overview(results, rows)
    yield "## Ranks by task"
    yield RANKS
    body = [
        [_name(rows[n]), *(_place(places[name][n], rows[n].task(name)) for name in tasks)]
        for n in order
        if any(place[n] is not None for place in places.values())
    ]
    yield _table(["constraint", *(escaped(task["title"]) for task in tasks.values())], body)


def _place(place: int | None, outcome: Mapping[str, Any]) -> str:
    if place is None:
        return _ABSENT if outcome["status"] == "none" else outcome["status"]
    return str(place) if outcome["status"] == DONE else f"{place} ({outcome['status']})"


def _task(name: str, task: Mapping[str, Any], rows: Sequence[Row]) -> Iterator[str]:
    _, places = ranks_in(rows, name, task["columns"])
    yield f"## {escaped(task['title'])}"
    yield escaped(task["about"])
    yield "\n".join(f"- {escaped(label)}: {escaped(about)}" for label, about in definitions_of(task).items())
    body = [
        [
            str(places[n] or _ABSENT),
            _name(rows[n]),
            *(escaped(figure_text(rows[n].task(name)["figures"].get(key))) for key in task["columns"]),
        ]
        for n in ordered(rows, places)
        if rows[n].task(name)["figures"]
    ]
    labels = [escaped(column["label"]) for column in task["columns"].values()]
    yield _table(["rank", "constraint", *labels], body) if body else "No constraint has a figure here."


def _settings(rows: Sequence[Row]) -> Iterator[str]:
    body = []
    for row in sorted(rows, key=lambda row: row.name):
        chosen = [
            f"{escaped(task)}: {escaped(name)} = {escaped(value)}"
            for task, settings in row.content["settings"].items()
            for name, value in settings.items()
        ]
        if chosen or row.content.get("ratio") is not None:
            ratio = row.content.get("ratio")
            body.append([_name(row), _ABSENT if ratio is None else f"{ratio:g}", "; ".join(chosen) or "no choice"])
    if body:
        yield "## Settings that were chosen"
        yield (
            "On other data than those reported. A constraint makes the updates of the suite's budget divided by its "
            "cost, rounded to one decimal, so that each has the same time."
        )
        yield _table(["constraint", "cost", "settings"], body)


def _problems(results: Mapping[str, Any], rows: Sequence[Row]) -> Iterator[str]:
    listed = [
        f"- {_name(row)}: {escaped(', '.join(titles))}: {escaped(status)}. {escaped(reason)}"
        for row in sorted(rows, key=lambda row: row.name)
        for status, reason, titles in problems_of(results, row)
    ]
    if listed:
        yield "## Refused, failed, incomplete"
        yield "\n".join(listed)


def _origin(results: Mapping[str, Any]) -> Iterator[str]:
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    threads = results["machine"].get("threads")
    yield "## Where the numbers come from"
    yield "\n".join(
        [
            f"- Suite {escaped(results['suite']['name'])}, hash {escaped(results['suite']['hash'])}.",
            f"- {escaped(versions)}.",
            f"- Cores: {escaped(results['machine'].get('cores'))}; threads of a trial: {escaped(threads)}.",
            "- Figures are means over trials; after ± stands half of the 95% interval over seeds, in brackets one that "
            "ends at the least or largest possible figure, in parentheses the range of two seeds or of equal ones. "
            "Costs have the quartiles of their rounds in parentheses.",
        ]
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows))


def _name(row: Row) -> str:
    name = f"`{row.name}`" if _NAME.fullmatch(row.name) else escaped(row.name)
    return f"{name} (reference)" if row.reference else name
