"""Writes a benchmark's results as one HTML file, to be read offline, on a phone too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

from ganlab_compare import page, scale_of

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

_MEANS = "The mean over trials with its 95% interval over seeds, or the range of two or of equal ones"

# Where the bars of intervals begin and end, in units of their drawing.
_BAR = (3.0, 117.0)
# What a figure is, by the kind of its task.
_ABOUT = {"cost": "The median over rounds with its quartiles", "sensitivity": "The fraction of the settings tried"}
# More columns than these are wider than a printed page: the table prints as cards.
_MOST_ON_PAPER = 4


def report(results: Mapping[str, Any]) -> str:
    """The page of some results, as the text of an HTML file.

    Args:
        results: The content of results.json. All text in it is escaped.
    """
    rows = rows_of(results)
    places, order = overview(results, rows)
    return page(
        "ganlab_benchmark",
        "benchmark.html",
        title=f"Benchmark: {results['suite']['title']}",
        style=resources.files("ganlab_benchmark").joinpath("templates", "benchmark.css").read_text(encoding="utf-8"),
        results=results,
        rows=rows,
        places=places,
        order=order,
        shown=list(_tasks(results, rows)),
        tuned=[row for row in rows if any(row.content["settings"].values()) or row.content.get("ratio") is not None],
        facts=_facts(results),
        about_ranks=RANKS,
        done=DONE,
        most_on_paper=_MOST_ON_PAPER,
        figure_text=figure_text,
        problems_of=problems_of,
    )


def _tasks(results: Mapping[str, Any], rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Each task: its definition and that of its columns, then its rows with figures, the best constraint first."""
    for name, task in results["tasks"].items():
        each, places = ranks_in(rows, name, task["columns"])
        outcomes = [row.task(name) for row in rows]
        columns = []
        for key, column in task["columns"].items():
            means = [figure["mean"] for outcome in outcomes if (figure := outcome["figures"].get(key))]
            columns.append({**column, "key": key, "scale": scale_of(means, *_BAR)})
        yield {
            **task,
            "name": name,
            "definitions": definitions_of(task),
            "columns": columns,
            "rows": [
                (rows[n], outcomes[n], places[n], each[n] if len(columns) > 1 else {})
                for n in ordered(rows, places)
                if outcomes[n]["figures"]
            ],
            "caption": f"{_ABOUT.get(task['kind'], _MEANS)}, as numbers and as a dot and a bar on a scale that the "
            "column shares. n: how many there are.",
        }


def _facts(results: Mapping[str, Any]) -> dict[str, Any]:
    facts = {
        "suite": f"{results['suite']['name']}, hash {results['suite']['hash']}",
        "begun": results["created"],
        "written": results["date"],
        **results["versions"],
        **results["machine"],
    }
    for name, size in results["budget"].items():
        facts[f"budget of {name}"] = (
            f"{size['steps']} updates at cost 1, seeds {', '.join(map(str, size['seeds']))}, "
            f"{', '.join(size['reports'])}"
        )
    return facts
