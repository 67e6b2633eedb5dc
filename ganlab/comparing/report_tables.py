"""The tables of a report: the configurations, their figures, and the probability that one is better than another.

Each figure is printed to four digits and stands in full in `data-value`, beside the names under which `--json` has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from ganlab.comparing.axes import Scale, scale_of
from ganlab.comparing.comparison import Comparison, Metric
from ganlab.comparing.configurations import Configuration
from ganlab.comparing.html import Child, breakable, element, parts_of
from ganlab.comparing.statistics import Estimate, Improvement
from ganlab.comparing.svg import interval, key
from ganlab.comparing.table import number as number_text
from ganlab.comparing.table import text_of
from ganlab.comparing.verdicts import in_brief
from ganlab.comparing.warnings import best_before, changed, health_of, warnings_in
from ganlab.runs import changes, health
from ganlab.runs.changes import MARK
from ganlab.runs.naming import Scalar
from ganlab.support.formatting import in_time

# More metrics than these are wider than a printed page: the table prints as cards.
_MOST_ON_PAPER = 3
# Tables of no more rows stay on one page.
_SHORT = 8
_BAR = (3.0, 117.0)


@dataclass(frozen=True)
class Column:
    """A column's head: its title, and a remark beneath it."""

    title: str
    remark: str | None = None


def table(
    caption: str,
    columns: Sequence[Column],
    rows: Iterable[tuple[Child, Sequence[Sequence[Child]]]],
    *,
    wide: bool = False,
) -> ET.Element:
    """A table whose rows have a head; on narrow pages each row becomes a card that names its columns.

    Args:
        caption: What it shows.
        columns: The heads, that of the rows' heads first.
        rows: Each its head and its cells, each cell the things in it.
        wide: Print it as cards too.
    """
    heads = [element("th", breakable(column.title), _small(column.remark), scope="col") for column in columns]
    body = element("tbody")
    for head, cells in rows:
        row = element("tr", element("th", head, scope="row"))
        for column, cell in zip(columns[1:], cells, strict=True):
            inside = [element("span", child) if isinstance(child, str) else child for child in cell]
            row.append(element("td", *inside, data_label="\N{ZERO WIDTH SPACE}".join(parts_of(column.title))))
        body.append(row)
    classes = ["wide"] * wide + ["short"] * (len(body) <= _SHORT)
    head = element("thead", element("tr", *heads))
    made = element("table", element("caption", caption), head, body, class_=" ".join(classes) or None)
    return element("div", made, class_="table")


def named(number: int, label: str) -> ET.Element:
    """A configuration's label beside the key of its lines."""
    return element("span", key(number), breakable(label), class_="named")


def _head(number: int, row: Configuration) -> ET.Element:
    """A configuration's label, marked if runs of it were changed midway."""
    head = named(number, row.label)
    if runs := changed(row):
        head.append(element("strong", f" {MARK}", title=f"changed midway: {', '.join(run.name for run in runs)}"))
    return head


def configurations(comparison: Comparison) -> ET.Element:
    """The settings of each configuration, among those that differ, and its runs."""
    columns = [Column(title) for title in ("Configuration", "Settings that differ", "Seeds", "Status")]
    rows: list[tuple[Child, list[list[Child]]]] = []
    for number, row in enumerate(comparison.configurations):
        own = [name for name in comparison.differing if name in row.settings]
        parts = [element("li", _name(name), " = ", _setting(row.settings[name])) for name in own]
        parts += [
            element("li", f"{MARK} {run.name}, at step {change.step}: {line}")
            for run in changed(row)
            for change in run.changes
            for line in change.what
        ]
        seeds = ", ".join("?" if run.seed is None else str(run.seed) for run in row.runs)
        rows.append((_head(number, row), [[element("ul", *parts, class_="settings")], [seeds], [_statuses(row)]]))
    about = "A configuration is what its runs share: all settings but the seed."
    if any(map(changed, comparison.configurations)):
        about += f" {MARK} Runs of it were changed midway: before that they had other settings."
    return table(about, columns, rows)


def settings(common: dict[str, Scalar]) -> ET.Element:
    """The settings that all runs share."""
    rows = [(_name(name), [[_setting(value)]]) for name, value in common.items()]
    return table("The same wherever they apply.", [Column("Setting"), Column("Value")], rows)


def results(comparison: Comparison) -> ET.Element:
    """One row per configuration: for each metric the mean of the last values with its interval, and the best ones."""
    columns = [Column("Configuration"), Column("Runs"), Column("Health"), Column("Warnings")]
    columns += [Column(metric.tag, _remark(comparison, metric)) for metric in comparison.metrics]
    columns += [Column("Time", "mean"), Column("Steps/s", "mean")]
    cells: list[list[list[Child]]] = [
        [[_figure(len(row.runs), row, "runs")], [health_of(row)], [str(warnings_in(row))]]
        for row in comparison.configurations
    ]
    for metric in comparison.metrics:
        for row_cells, cell in zip(cells, _metric_cells(comparison, metric), strict=True):
            row_cells.append(cell)
    for row_cells, row in zip(cells, comparison.configurations, strict=True):
        row_cells.append([_figure(row.wall_seconds, row, "wall_seconds", text=in_time(row.wall_seconds))])
        speed = row.steps_per_second
        row_cells.append([_figure(speed, row, "steps_per_second", text=None if speed is None else f"{speed:.3g}")])
    rows = [
        (_head(number, row), row_cells)
        for number, (row, row_cells) in enumerate(zip(comparison.configurations, cells, strict=True))
    ]
    return table(
        "The mean of the last values over the runs, its 95% interval in brackets (of two runs, or of equal ones, their "
        "range), and n if not all runs have it"
        + (
            "; then the same of each run's best value. Bold: the best mean; *: every other row is worse, beyond chance"
            if comparison.best
            else ""
        )
        + ". Bars: means and intervals or ranges, on one scale per column, linear unless its head notes otherwise.",
        columns,
        rows,
        wide=len(comparison.metrics) > _MOST_ON_PAPER,
    )


def improvements(comparison: Comparison) -> ET.Element | None:
    """The probability that a run of each configuration beats one of the reference; None if nothing is known."""
    known = [metric for metric in comparison.metrics if any(tag == metric.tag for _, tag in comparison.improvement)]
    if not known:
        return None
    columns = [Column("Configuration")]
    for metric in known:
        columns.append(Column(metric.tag, f"{_direction(metric)}; against {_reference(comparison, metric.tag)}"))
    rows = []
    for number, row in enumerate(comparison.configurations):
        cells = [_improvement_cell(comparison, row, metric.tag) for metric in known]
        rows.append((_head(number, row), cells))
    return table(
        "The probability that a run of a configuration is better than a run of the reference, over all pairs of runs, "
        "with the 95% interval and a verdict: p is multiplied by the number of differences looked at, and open means "
        "that the difference may be chance. 0.5: no difference is seen.",
        columns,
        rows,
        wide=len(known) > _MOST_ON_PAPER,
    )


def runs(comparison: Comparison) -> ET.Element:
    """Every run: its seed, how it ended, its health and warnings, and its last step."""
    columns = [
        Column(title) for title in ("Run", "Configuration", "Seed", "Status", "Health", "Warnings", "Step", "Time")
    ]
    rows: list[tuple[Child, list[list[Child]]]] = []
    for number, row in enumerate(comparison.configurations):
        for run in row.runs:
            seed = "?" if run.seed is None else str(run.seed)
            step = str(run.step) if run.step == run.steps else f"{run.step} of {run.steps}"
            texts = (
                seed,
                f"{run.status}, changed {changes.in_brief(run.changes)}" if run.changes else run.status,
                health.in_brief(run.health),
                str(len(run.warnings)),
                step,
                in_time(run.wall_seconds),
            )
            cells: list[list[Child]] = [[text] for text in texts]
            rows.append((run.name, [[_head(number, row)], *cells]))
    return table("All runs that are counted.", columns, rows)


def _metric_cells(comparison: Comparison, metric: Metric) -> list[list[Child]]:
    """A column of cells, whose bars share a scale."""
    found = [comparison.estimates.get((row.label, metric.tag)) for row in comparison.configurations]
    there = [estimate for estimate in found if estimate]
    scale, _ = _scale(comparison, metric)
    means = [estimate.mean for estimate in there]
    leading = {"max": max, "min": min}[metric.direction](means, default=None) if metric.direction else None
    cells: list[list[Child]] = []
    for row, estimate in zip(comparison.configurations, found, strict=True):
        cell: list[Child] = [element("span", "-", class_="none")]
        if estimate:
            low, high = (float("nan") if end is None else end for end in (estimate.low, estimate.high))
            leads = estimate.mean == leading and len(there) > 1
            cell = [
                _figure(estimate.mean, row, "last.mean", metric.tag, class_="leading" if leads else None),
                "*" if comparison.leading.get(metric.tag) == row.label else None,
                element("small", *_details(estimate, row, "last", metric.tag)),
                _middle(estimate, row, metric.tag),
                interval(estimate.mean, low, high, scale),
            ]
        best = comparison.best.get((row.label, metric.tag))
        if best:
            mean = _figure(best.mean, row, "best.mean", metric.tag)
            before = f" {MARK} from before a change" if best_before(row, metric.tag) else None
            cell.append(element("small", "best ", mean, " ", *_details(best, row, "best", metric.tag), before))
        cells.append(cell)
    return cells


def _scale(comparison: Comparison, metric: Metric) -> tuple[Scale, bool]:
    """The scale of a column's bars, and whether an interval reaches beyond it."""
    there = [found for (_, tag), found in comparison.estimates.items() if tag == metric.tag]
    ends = [end for estimate in there for end in (estimate.low, estimate.high) if end is not None]
    scale = scale_of([estimate.mean for estimate in there], *_BAR, bands=ends)
    return scale, any(not scale.low <= end <= scale.high for end in ends)


def _remark(comparison: Comparison, metric: Metric) -> str | None:
    """The better direction, and a note on reading the bars if their scale is not linear."""
    said = [_direction(metric)]
    scale, cut = _scale(comparison, metric)
    if scale.logarithmic:
        said.append(f"bars: logarithmic, {number_text(scale.low)} to {number_text(scale.high)}")
    if cut:
        said.append("intervals that reach further are cut, with an arrow")
    return "; ".join(part for part in said if part) or None


def _details(estimate: Estimate, row: Configuration, which: str, tag: str) -> list[Child]:
    """An estimate's interval, and its number of runs if that is not all of them."""
    found = _bounds(estimate.low, estimate.high, row, f"{which}.", tag)
    if estimate.method == "range":
        found.insert(0, "range ")
    if estimate.n != len(row.runs):
        found += [" n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}", _figure(estimate.n, row, f"{which}.n", tag)]
    return found


def _middle(estimate: Estimate, row: Configuration, tag: str) -> ET.Element | None:
    """The interquartile mean with its interval; None if there are too few runs for one."""
    if estimate.iqm is None:
        return None
    bounds = _bounds(estimate.iqm_low, estimate.iqm_high, row, "last.iqm_", tag)
    return element("small", "interquartile mean ", _figure(estimate.iqm, row, "last.iqm", tag), " ", *bounds)


def _bounds(low: float | None, high: float | None, row: Configuration, which: str, tag: str) -> list[Child]:
    if low is None or high is None:
        return []
    return ["[", _figure(low, row, f"{which}low", tag), ", ", _figure(high, row, f"{which}high", tag), "]"]


def _improvement_cell(comparison: Comparison, row: Configuration, tag: str) -> list[Child]:
    found = comparison.improvement.get((row.label, tag))
    if found is None or found.against == row.label:
        reference = _reference(comparison, tag) == row.label
        return [element("span", "reference" if reference else "-", class_="none")]
    text = _figure(found.probability, row, "improvement.probability", tag, text=f"{found.probability:.2f}")
    return [text, _improvement_interval(found, row, tag), element("small", in_brief(found)), _improvement_bar(found)]


def _improvement_interval(found: Improvement, row: Configuration, tag: str) -> Child:
    if found.low is None or found.high is None:
        return None
    low = _figure(found.low, row, "improvement.low", tag, text=f"{found.low:.2f}")
    high = _figure(found.high, row, "improvement.high", tag, text=f"{found.high:.2f}")
    return element("small", "[", low, ", ", high, "]")


def _improvement_bar(found: Improvement) -> ET.Element:
    low, high = (float("nan") if end is None else end for end in (found.low, found.high))
    return interval(found.probability, low, high, scale_of([0.0, 1.0], *_BAR, tight=True))


def _figure(
    value: float | None,
    row: Configuration,
    figure: str,
    tag: str | None = None,
    *,
    text: str | None = None,
    class_: str | None = None,
) -> ET.Element:
    if value is None:
        return element("span", "-", class_="none")
    return element(
        "span",
        number_text(value) if text is None else text,
        class_=class_,
        data_configuration=row.label,
        data_metric=tag,
        data_figure=figure,
        data_value=repr(value),
    )


def _reference(comparison: Comparison, tag: str) -> str:
    return next(found.against for (_, of), found in comparison.improvement.items() if of == tag)


def _direction(metric: Metric) -> str | None:
    return {"max": "higher is better", "min": "lower is better"}[metric.direction] if metric.direction else None


def _name(setting: str) -> ET.Element:
    return element("code", breakable(setting))


def _setting(value: Scalar) -> ET.Element:
    return element("code", text_of(value))


def _statuses(row: Configuration) -> str:
    statuses = [run.status for run in row.runs]
    return ", ".join(f"{statuses.count(status)} {status}" for status in dict.fromkeys(statuses))


def _small(text: str | None) -> Child:
    return element("small", text) if text else None
