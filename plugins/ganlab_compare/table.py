"""Prints a comparison: the best rows in ten lines, or tables as wide as the screen with sentences below."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ganlab.commands import counted, in_time
from ganlab.files import line
from ganlab.runs import MARK, Scalar
from ganlab_compare.brief import best_first, main_metric, short_names
from ganlab_compare.comparison import Comparison
from ganlab_compare.configurations import CUT, Configuration
from ganlab_compare.labels import shortened, telling
from ganlab_compare.metrics import Metric
from ganlab_compare.statistics import Estimate
from ganlab_compare.verdicts import RULE, in_brief

# Between columns, as rich draws them.
_GAP = 3

# The lines of the short form.
_LINES = 10

# The share of the width that the settings may take; if they need more, one column has them all.
_SETTINGS = 0.45


@dataclass(frozen=True)
class _Column:
    """One column: its heading and a cell a configuration, lines of both separated by line ends."""

    heading: str
    cells: tuple[str, ...]
    right: bool = True

    @property
    def width(self) -> int:
        return max(len(part) for text in (self.heading, *self.cells) for part in text.split("\n"))


def print_brief(comparison: Comparison, console: Console, metrics: Sequence[Metric] = ()) -> None:
    """Prints the best rows in ten lines, with further metrics beside the one that rows are sorted by."""
    main, rows = main_metric(comparison), best_first(comparison)
    room, advice = _LINES - 2, Text()
    for _ in range(2):  # the number of rows that are left out is part of the advice below them
        advice = Text(line(" ".join(_advice(comparison, main, len(rows) - room))))
        room = max(1, _LINES - 1 - len(advice.wrap(console, console.width)))
    rows = rows[:room]
    figures = list(_figures(comparison, rows, main, metrics))
    while len(figures) > 2 and sum(column.width + _GAP for column in figures) > console.width * (1 - _SETTINGS / 2):
        figures.pop()
    width = console.width - sum(column.width + _GAP for column in figures)
    first, *settings = _leading(comparison, rows, width)
    columns = [replace(first, cells=_cut(first.cells, width) if not settings else first.cells), *settings, *figures]
    console.print(_table(columns, compact=True))
    console.print(advice)


def print_tables(comparison: Comparison, console: Console) -> None:
    """Prints all rows with all metrics, as many side by side as the console is wide, and the notes."""
    comparison = replace(comparison, configurations=best_first(comparison))
    _print(comparison, list(_columns(comparison)), "", [*_reading(comparison), *comparison.problems], console)


def print_statistics(comparison: Comparison, console: Console) -> None:
    """Prints the probabilities of improvement and the verdicts."""
    comparison = replace(comparison, configurations=best_first(comparison))
    title = "\nProbability that a run is better than a run of the reference, [95% interval], verdict:"
    _print(comparison, list(_improvements(comparison)), title, _verdicts(comparison), console)


def _print(
    comparison: Comparison, columns: list[_Column], title: str, sentences: Iterable[str], console: Console
) -> None:
    leading = _leading(comparison, comparison.configurations, _SETTINGS * console.width)
    for count, group in enumerate(_side_by_side(leading, columns, console.width) if columns else ()):
        if title or count:
            console.print(title)
        console.print(_table([*leading, *group]))
    for count, sentence in enumerate(sentences):
        console.print(Text(("" if count else "\n") + line(f"- {sentence}")))


def text_of(value: Scalar | None) -> str:
    """A setting's value as tables and labels show it; a dash if there is none."""
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else line(value)


def number(value: float) -> str:
    """A figure with four digits."""
    return f"{value:.4g}"


def _leading(comparison: Comparison, rows: Sequence[Configuration], width: float) -> list[_Column]:
    """The columns that identify rows: the settings that differ, else those that tell rows apart, else short labels."""
    names, short = shortened(comparison.differing), short_names(comparison)
    few = telling([one.settings for one in comparison.configurations], comparison.differing)
    for chosen in (comparison.differing, few):
        columns = [
            _Column(line(names[name]), tuple(text_of(one.settings.get(name)) for one in rows), _all_numbers(rows, name))
            for name in chosen
        ]
        if columns and sum(column.width + _GAP for column in columns) <= width:
            break
    else:
        columns = [_Column("configuration", tuple(line(short[one.label]) for one in rows), right=False)]
    cells = (_marked(cell) if one.changed else cell for one, cell in zip(rows, columns[0].cells, strict=True))
    return [replace(columns[0], cells=tuple(cells)), *columns[1:]]


def _cut(labels: Sequence[str], width: int) -> tuple[str, ...]:
    """Labels whose names are cut, rather than values, until all of them fit."""
    texts = tuple(labels)
    for most in (16, 12, 8, 6, 4, 2):
        if max(map(len, texts)) > width:
            texts = tuple(re.sub(rf"(?<!\S)([^\s=]{{{most}}})[^\s=]+", r"\1…", label) for label in labels)
    return texts


def _figures(
    comparison: Comparison, rows: Sequence[Configuration], main: Metric | None, others: Sequence[Metric]
) -> Iterator[_Column]:
    """The main metric with its interval, the means of other metrics, and the states of runs."""
    for tag, name in shortened([one.tag for one in dict.fromkeys([main, *others]) if one]).items():
        leader = comparison.leading.get(tag)
        found = [
            estimated(comparison.estimates.get((one.label, tag)), len(one.runs), one.label == leader) for one in rows
        ]
        yield _Column(line(name), tuple(text.partition("\n")[0] for text in found))
        intervals = tuple(text.partition("\n")[2].replace("\n", " ") for text in found)
        if main and tag == main.tag and any(intervals):
            yield _Column("interval", intervals, right=False)
    states = (statuses(one) for one in rows)
    yield _Column(
        "runs", tuple(text if "," in text else text.removesuffix(" completed") for text in states), right=False
    )


def _advice(comparison: Comparison, main: Metric | None, more: int) -> Iterator[str]:
    """How the rows are sorted, and what prints the rest."""
    estimates = comparison.estimates.values()
    if main and main.direction:
        yield f"Best first by {main.tag}, {'higher' if main.direction == 'max' else 'lower'} is better."
    elif main:
        yield f"Which values of {main.tag} are better is unknown: give --metric {main.tag}:max or :min."
    if main and main.tag in comparison.leading:
        yield "*: better than every other row, beyond chance."
    if estimates and all(one.n == 1 for one in estimates):
        yield "One run each: how much of a difference is chance is unknown."
    if any(one.changed for one in comparison.configurations):
        yield f"{MARK}: changed midway."
    rest = [counted(more, "more row")] if more > 0 else []
    rest += [counted(len(comparison.problems), "note")] if comparison.problems else []
    yield f"--all prints {', '.join([*rest, 'every metric'])}; --statistics, what may be chance."


def statuses(one: Configuration) -> str:
    """How many of its runs are in which state: `4 completed, 1 diverged`."""
    return ", ".join(f"{count} {status}" for status, count in Counter(run.status for run in one.runs).items())


def _marked(cell: str) -> str:
    """A cell with the mark for runs that were changed midway, at the end of its first line."""
    first, end, rest = cell.partition("\n")
    return f"{first} {MARK}{end}{rest}"


def _columns(comparison: Comparison) -> Iterator[_Column]:
    rows = comparison.configurations
    yield _Column("runs", tuple(_runs(one) for one in rows))
    yield _Column("health", tuple(one.health for one in rows))
    yield _Column("warnings", tuple(str(one.warnings) for one in rows))
    for metric in comparison.metrics:
        heading = _heading(metric.tag)
        lasts = [comparison.estimates.get((one.label, metric.tag)) for one in rows]
        leader = comparison.leading.get(metric.tag)
        cells = tuple(
            estimated(last, len(one.runs), one.label == leader) for one, last in zip(rows, lasts, strict=True)
        )
        yield _Column(f"{heading}\nlast", cells)
        if metric.direction:
            bests = [comparison.best.get((one.label, metric.tag)) for one in rows]
            cells = tuple(map(estimated, bests, (len(one.runs) for one in rows)))
            cells = tuple(
                _marked(cell) if one.best_before_change(metric.tag) else cell
                for one, cell in zip(rows, cells, strict=True)
            )
            yield _Column(f"{heading}\nbest ({metric.direction})", cells)
    yield _Column("time", tuple(in_time(one.wall_seconds) for one in rows))
    speeds = [one.steps_per_second for one in rows]
    yield _Column("steps/s", tuple("-" if speed is None else f"{speed:.3g}" for speed in speeds))


def _improvements(comparison: Comparison) -> Iterator[_Column]:
    for metric in comparison.metrics:
        improvements = [comparison.improvement.get((one.label, metric.tag)) for one in comparison.configurations]
        reference = next((one.against for one in improvements if one is not None), None)
        if reference is None:
            continue
        cells = tuple(
            f"{better.probability:.2f} [{better.low:.2f}, {better.high:.2f}]\n{in_brief(better)}"
            if better is not None
            else "reference"
            if one.label == reference
            else "-"
            for one, better in zip(comparison.configurations, improvements, strict=True)
        )
        yield _Column(f"{_heading(metric.tag)}\n({metric.direction})", cells)


def _side_by_side(leading: Sequence[_Column], columns: Sequence[_Column], width: int) -> Iterator[list[_Column]]:
    """The columns in groups that fit beside the leading ones; a group has one at least."""
    room = width - min(sum(column.width + _GAP for column in leading), int(_SETTINGS * width))
    group: list[_Column] = []
    used = 0
    for column in columns:
        if group and used + column.width + _GAP > room:
            yield group
            group, used = [], 0
        group.append(column)
        used += column.width + _GAP
    yield group


def _table(columns: Sequence[_Column], *, compact: bool = False) -> Table:
    lines = None if compact else box.SIMPLE_HEAD
    table = Table(box=lines, header_style="bold", pad_edge=False, show_edge=False)
    if compact:
        table.padding = (0, _GAP, 0, 0)
    for column in columns:
        # Figures are not wrapped; other cells may wrap between words.
        table.add_column(
            Text(column.heading), justify="right" if column.right else "left", no_wrap=compact or column.right
        )
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(Text, cells))
    return table


def _heading(tag: str) -> str:
    return line(tag.removeprefix("evaluation/")).replace("/", "\n")


def _runs(one: Configuration) -> str:
    lines = [str(len(one.runs))]
    lines += [f"{len(one.unfinished)} unfinished"] if one.unfinished else []
    lines += [f"{len(one.diverged)} diverged"] if one.diverged else []
    return "\n".join(lines)


def estimated(estimate: Estimate | None, runs: int, leads: bool = False) -> str:
    """An estimate in lines: the mean, its interval, the interquartile mean, and the number of runs if not all."""
    if estimate is None:
        return "-"
    lines = [number(estimate.mean) + (" *" if leads else "")]
    if estimate.low is not None and estimate.high is not None:
        kind = "range " if estimate.method == "range" else ""
        lines.append(f"{kind}[{number(estimate.low)}, {number(estimate.high)}]")
    if estimate.iqm is not None:
        lines.append(f"iqm {number(estimate.iqm)}")
    if estimate.n < runs:
        lines.append(f"of {estimate.n}")
    return "\n".join(lines)


def _reading(comparison: Comparison) -> Iterator[str]:
    """Notes on how to read the tables."""
    estimates = comparison.estimates.values()
    if any(one.n > 1 for one in estimates):
        middle = ", interquartile mean" if any(one.iqm is not None for one in estimates) else ""
        is_range = any(one.method == "range" for one in estimates)
        ranges = ", or the range of two runs or of equal ones" if is_range else ""
        yield f"Figures: mean over runs, [95% interval]{ranges}{middle}. docs/comparing.md describes them."
    elif estimates:
        yield "One run each: how much of a difference is chance is unknown. Train more seeds: ganlab run --seed N."
    if any(one.changed for one in comparison.configurations):
        yield f"{MARK} has runs that were changed midway; a best value so marked is from before the change."
    if any(one.label.endswith(CUT) for one in comparison.configurations):
        yield "More settings differ than fit: --csv and --html show all of them; --by groups by some."


def _verdicts(comparison: Comparison) -> Iterator[str]:
    """The verdicts, a sentence or two per metric, and the rule behind them."""
    for tag, text in comparison.verdicts.items():
        yield f"{tag.removeprefix('evaluation/')}: {text}"
    if any(tag in comparison.verdicts for _, tag in comparison.improvement):
        yield RULE


def _all_numbers(rows: Sequence[Configuration], name: str) -> bool:
    return not any(isinstance(one.settings.get(name), str) for one in rows)
