"""Writes a comparison as one HTML file, without requests to servers or scripts, to be read offline or printed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from xml.etree import ElementTree as ET

from ganlab.comparing import report_figures, report_tables
from ganlab.comparing.comparison import Comparison
from ganlab.comparing.curves import read_curves
from ganlab.comparing.html import Child, breakable, element, page
from ganlab.comparing.provenances import origins
from ganlab.comparing.verdicts import RULE

_NO_DIRECTION = (
    "The better direction of these metrics is unknown. Give it to see which configuration is better and how surely: "
    "--metric 'TAG:min' or --metric 'TAG:max'."
)


def report(comparison: Comparison) -> str:
    """The report on a comparison, as the text of an HTML file.

    Everything that comes from runs is text or a picture in it: a policy of the page itself forbids scripts, and
    everything that is not in the file.

    Args:
        comparison: The comparison to report.

    Raises:
        RunError: A run's metrics cannot be read.
    """
    style = (resources.files("ganlab.comparing") / "report.css").read_text(encoding="utf-8")
    style += report_figures.switching_rules(len(comparison.configurations))
    sections = list(_sections(comparison))
    title = _title(comparison)
    links = [element("li", element("a", heading, href=f"#{name}")) for name, heading, _ in sections]
    header = element("header", element("h1", title), element("nav", element("ul", *links), aria_label="Sections"))
    return page(title, style, header, element("main", *(section for _, _, section in sections)))


def _sections(comparison: Comparison) -> Iterator[tuple[str, str, ET.Element]]:
    """The name, heading and element of each section, in order; empty ones are left out."""
    yield _section("compared", "What is compared", *_compared(comparison), page=False)
    yield _section("results", "Results", report_tables.results(comparison), page=False)
    if len(comparison.configurations) > 1:
        improvements = report_tables.improvements(comparison) or element("p", _NO_DIRECTION)
        verdicts = list(_verdicts(comparison))
        yield _section("improvement", "Probability of improvement", *verdicts, improvements, page=False)
    yield _section("problems", "Problems", _problems(comparison), page=False)
    over_steps = list(_charts(comparison, replicas=False))
    if over_steps:
        switches = report_figures.switches([row.label for row in comparison.configurations])
        charts = element("div", *over_steps, class_="charts")
        yield _section("curves", "Curves", _about_curves(comparison), switches, charts)
    spreads = list(_charts(comparison, replicas=True))
    if spreads:
        about = (
            "How far the replicas of a run are apart: the largest value less the smallest; lines and bands as above."
        )
        note = element("p", about, class_="note")
        yield _section("replicas", "Spread over replicas", note, element("div", *spreads, class_="charts"))
    samples = list(report_figures.sample_figures(comparison))
    if samples:
        note = element("p", "The newest picture of each run.", class_="note")
        yield _section("samples", "Samples", note, *samples)
    yield _section("origin", "Where the numbers come from", *_origin(comparison))


def _section(name: str, heading: str, *inside: Child, page: bool = True) -> tuple[str, str, ET.Element]:
    """A section; with `page` it begins a new page when printed."""
    section = element("section", element("h2", heading), *inside, id=name, class_="page" if page else None)
    return name, heading, section


def _title(comparison: Comparison) -> str:
    runs = sum(len(row.runs) for row in comparison.configurations)
    return f"Comparison: {_count(len(comparison.configurations), 'configuration')}, {_count(runs, 'run')}"


def _compared(comparison: Comparison) -> Iterator[ET.Element]:
    if comparison.problems:
        sentence = f"{_count(len(comparison.problems), 'thing')} to know before reading on"
        yield element("p", element("a", sentence, href="#problems"), ".")
    yield report_tables.configurations(comparison)
    if comparison.common:
        summary = f"{_count(len(comparison.common), 'setting')} that all share"
        yield element("details", element("summary", summary), report_tables.settings(comparison.common))


def _problems(comparison: Comparison) -> ET.Element:
    if not comparison.problems:
        return element("p", _no_problems(comparison))
    return element("ul", *(element("li", problem) for problem in comparison.problems), class_="problems")


def _verdicts(comparison: Comparison) -> Iterator[ET.Element]:
    """The verdicts on each metric, and the rule behind them."""
    if not comparison.verdicts:
        return
    items = [element("li", element("strong", breakable(tag)), ": ", text) for tag, text in comparison.verdicts.items()]
    yield element("ul", *items, class_="verdicts")
    if comparison.improvement:
        yield element("p", RULE, class_="note")


def _no_problems(comparison: Comparison) -> str:
    runs = [run for row in comparison.configurations for run in row.runs]
    unseen = sum(run.health is None for run in runs)
    if unseen:
        return f"None found: every run was read, and has finished. The health of {unseen} is unknown."
    return "None found: every run was read, has finished, and was healthy and without a warning."


def _about_curves(comparison: Comparison) -> ET.Element:
    about = "Lines are means over a configuration's runs. "
    if len(comparison.configurations) <= report_figures.MOST_BANDS:
        about += "Bands reach from the smallest to the largest run. "
    else:
        about += f"Bands are not drawn: {len(comparison.configurations)} of them would hide each other. "
    return element("p", about + "A click on a name in a legend hides its line in all charts.", class_="note")


def _charts(comparison: Comparison, *, replicas: bool) -> Iterator[ET.Element]:
    for number, metric in enumerate(comparison.metrics):
        found = [curve for curve in read_curves(comparison, metric.tag, replicas=replicas) if curve.steps]
        if found:
            quantity = "max - min over replicas" if replicas else "mean over runs"
            name = f"{'replicas' if replicas else 'curve'}-{number}"
            yield report_figures.curve_figure(comparison, metric.tag, found, name=name, quantity=quantity)


def _origin(comparison: Comparison) -> Iterator[ET.Element]:
    groups = origins([run for row in comparison.configurations for run in row.runs])
    for group in groups:
        rows = [(field, [[text]]) for field, text in group.fields.items()]
        columns = [report_tables.Column("Field"), report_tables.Column("Value")]
        which = "all runs" if len(groups) == 1 else f"{_count(len(group.runs), 'run')}: {', '.join(group.runs)}"
        summary = element("summary", f"Versions and devices of {which}")
        yield element("details", summary, report_tables.table("From run.json.", columns, rows))
    yield element("details", element("summary", "All runs"), report_tables.runs(comparison))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
