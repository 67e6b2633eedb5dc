"""Writes a benchmark's results as one HTML file, to be read offline, on a phone too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any
from xml.etree import ElementTree as ET

from ganlab.comparing.axes import scale_of
from ganlab.comparing.html import Child, breakable, element, page
from ganlab.comparing.report_tables import Column, table
from ganlab.comparing.svg import interval
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
_STYLE = """
.better { white-space: nowrap; }
.badge { font-weight: 400; font-size: 0.8em; color: var(--quiet); border: 1px solid var(--rule); border-radius: 0.6rem;
  padding: 0 0.45rem; white-space: nowrap; }
.warning { border-left: 3px solid var(--k1); padding-left: 0.7rem; }
dl.columns dt { font-weight: 600; margin-top: 0.4rem; }
dl.columns dd { margin: 0; max-width: 46rem; }
.first { font-weight: 700; }
/* Ranks stay a table on a phone too, which scrolls in its own box beside the names. */
@media screen and (max-width: 46rem) {
  .compact table { display: table; font-size: 0.85rem; }
  .compact tbody { display: table-row-group; }
  .compact thead { display: table-header-group; }
  .compact tbody tr { display: table-row; background: none; }
  .compact thead tr { display: table-row; }
  .compact th, .compact td, .compact td:not([colspan]) {
    display: table-cell; padding: 0.3rem 0.6rem 0.3rem 0; white-space: nowrap; border-bottom: 1px solid var(--rule);
  }
  .compact td:not([colspan])::before { content: none; }
  .compact thead th { white-space: normal; }
  .compact caption { display: table-caption; max-width: calc(100vw - 2rem); position: sticky; left: 0; }
  .compact tbody th, .compact thead th:first-child {
    position: sticky; left: 0; background: var(--page); min-width: 8rem; white-space: normal;
  }
}
"""


def report(results: Mapping[str, Any]) -> str:
    """The page of some results, as the text of an HTML file.

    Args:
        results: The content of results.json. All text in it is escaped.
    """
    style = (resources.files("ganlab.comparing") / "report.css").read_text(encoding="utf-8") + _STYLE
    rows = rows_of(results)
    sections = [_section(name, heading, *inside) for name, heading, inside in _sections(results, rows)]
    links = [element("li", element("a", heading, href=f"#{name}")) for name, heading, _ in _sections(results, rows)]
    title = f"Benchmark: {results['suite']['title']}"
    head = element("header", element("h1", title), element("nav", element("ul", *links), aria_label="Sections"))
    return page(title, style, head, element("main", *sections))


def _section(name: str, heading: str, *inside: Child) -> ET.Element:
    return element("section", element("h2", heading), *inside, id=name)


def _sections(results: Mapping[str, Any], rows: Sequence[Row]) -> Iterator[tuple[str, str, list[Child]]]:
    """The name, heading and content of each section, in order."""
    about = element("p", RANKS, class_="note")
    yield "overview", "Overview", [*_notes(results), about, _overview(results, rows)]
    for name, task in results["tasks"].items():
        yield f"task-{name}", task["title"], _task(name, task, rows)
    yield "settings", "Settings that were chosen", [_settings(results, rows)]
    problems = list(_problems(results, rows))
    if problems:
        about = element("p", "A constraint that is missing in a table above is here, with the reason.", class_="note")
        yield "problems", "Refused, failed, incomplete", [about, element("ul", *problems, class_="problems")]
    yield "origin", "Where the numbers come from", [_origin(results)]


def _notes(results: Mapping[str, Any]) -> Iterator[Child]:
    yield element("p", results["suite"]["about"])
    if not results["complete"]:
        yield element("p", "This benchmark has not ended: some figures are still missing.", class_="warning")
    for reference in results.get("references", ()):
        yield element("p", f"Rows marked “reference” are from {reference['file']}, of {reference['date']}.")
        for warning in reference["warnings"]:
            yield element("p", warning, class_="warning")


def _overview(results: Mapping[str, Any], rows: Sequence[Row]) -> ET.Element:
    """Ranks by task, one row for each constraint."""
    tasks = results["tasks"]
    places, order = overview(results, rows)
    columns = [Column("Constraint"), *(Column(task["title"]) for task in tasks.values())]
    body: list[tuple[Child, list[list[Child]]]] = [
        (_name(rows[n]), [[_place(places[name][n], rows[n].task(name))] for name in tasks]) for n in order
    ]
    made = table("Ranks by task.", columns, body, wide=len(tasks) > _MOST_ON_PAPER)
    made.set("class", "table compact")
    return made


def _place(place: int | None, outcome: Mapping[str, Any]) -> ET.Element:
    if place is None:
        return element("span", outcome["status"], class_="none")
    mark = "" if outcome["status"] == DONE else f" ({outcome['status']})"
    return element("span", f"{place}{mark}", class_="first" if place == 1 else None)


def _task(name: str, task: Mapping[str, Any], rows: Sequence[Row]) -> list[Child]:
    """A task: its definition and that of its columns, then the figures, the best constraint first."""
    each, places = ranks_in(rows, name, task["columns"])
    listed = [
        part for label, about in definitions_of(task).items() for part in (element("dt", label), element("dd", about))
    ]
    scales = {key: _scale(rows, name, key) for key in task["columns"]}
    columns = [Column("Constraint"), Column("Rank")]
    columns += [Column(column["label"], f"{column['better']} is better") for column in task["columns"].values()]
    body: list[tuple[Child, list[list[Child]]]] = []
    for n in ordered(rows, places):
        outcome = rows[n].task(name)
        if not outcome["figures"]:
            continue
        cells: list[list[Child]] = [[_place(places[n], outcome)]]
        for key in task["columns"]:
            rank = each[n].get(key) if len(task["columns"]) > 1 else None
            cells.append(_figure(outcome["figures"].get(key), scales[key], rank))
        body.append((_name(rows[n]), cells))
    made: list[Child] = [element("p", task["about"]), element("dl", *listed, class_="columns")]
    if not body:
        return [*made, element("p", "No constraint has a figure here.", class_="none")]
    caption = (
        f"{_ABOUT.get(task['kind'], _MEANS)}, as numbers and as a dot "
        "and a bar on a scale that the column shares. n: how many there are."
    )
    return [*made, table(caption, columns, body, wide=len(columns) > _MOST_ON_PAPER)]


def _scale(rows: Sequence[Row], task: str, key: str) -> Any:
    figures = [figure for row in rows if (figure := row.task(task)["figures"].get(key))]
    means = [figure["mean"] for figure in figures]
    return scale_of(means, *_BAR)


def _figure(figure: Mapping[str, Any] | None, scale: Any, rank: float | None) -> list[Child]:
    if figure is None:
        return [element("span", "-", class_="none")]
    low, high = figure.get("low"), figure.get("high")
    nan = float("nan")
    drawn = interval(figure["mean"], nan if low is None else low, nan if high is None else high, scale)
    text = element("span", figure_text(figure), data_value=figure["mean"])
    below = f"rank {rank:g}, n = {figure['n']}" if rank is not None else f"n = {figure['n']}"
    return [text, drawn, element("small", below)]


def _settings(results: Mapping[str, Any], rows: Sequence[Row]) -> ET.Element:
    """The settings that tuning chose, and the updates of each task."""
    body: list[tuple[Child, list[list[Child]]]] = []
    for row in sorted(rows, key=lambda row: row.name):
        chosen = [
            element("li", f"{task}: ", breakable(name), f" = {value}")
            for task, settings in row.content["settings"].items()
            for name, value in settings.items()
        ]
        if not chosen and row.content.get("ratio") is None:
            continue
        steps = row.content.get("steps") or {}
        given = [element("li", f"{task}: {count}") for task, count in steps.items()]
        ratio = row.content.get("ratio")
        cells: list[list[Child]] = [
            [element("ul", *chosen, class_="settings")],
            ["-" if ratio is None else f"{ratio:g}"],
            [element("ul", *given, class_="settings")],
            [str(row.content["origin"])],
        ]
        body.append((_name(row), cells))
    columns = [Column("Constraint"), Column("Settings"), Column("Cost"), Column("Updates"), Column("From")]
    caption = (
        "Settings are chosen on other data than those reported. Updates are those of the suite's budget divided by the "
        "cost, rounded to one decimal, so that every constraint has the same time."
    )
    return table(caption, columns, body)


def _problems(results: Mapping[str, Any], rows: Sequence[Row]) -> Iterator[ET.Element]:
    for row in sorted(rows, key=lambda row: row.name):
        for status, reason, titles in problems_of(results, row):
            yield element("li", _name(row), f" — {', '.join(titles)}: {status}. {reason}")


def _origin(results: Mapping[str, Any]) -> ET.Element:
    facts = {
        "suite": f"{results['suite']['name']}, hash {results['suite']['hash']}",
        "begun": results["created"],
        "written": results["date"],
        **results["versions"],
        **{name: str(value) for name, value in results["machine"].items()},
    }
    for name, size in results["budget"].items():
        facts[f"budget of {name}"] = (
            f"{size['steps']} updates at cost 1, seeds {', '.join(map(str, size['seeds']))}, "
            f"{', '.join(size['reports'])}"
        )
    body: list[tuple[Child, list[list[Child]]]] = [(element("span", name), [[value]]) for name, value in facts.items()]
    return table("Software, machine and budget.", [Column("What"), Column("Value")], body)


def _name(row: Row) -> ET.Element:
    """A constraint's name, marked if it is a reference."""
    made = element("span", breakable(row.name))
    if row.reference:
        made.append(element("span", "reference", class_="badge", title=row.reference))
        made[-2].tail = " "
    return made
