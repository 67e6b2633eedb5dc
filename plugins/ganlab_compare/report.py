"""Writes a comparison as one HTML file, without requests to servers or scripts, to be read offline or printed."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from ganlab.commands import counted, in_time
from ganlab.runs import MARK, Change, health_in_brief
from ganlab_compare import charts
from ganlab_compare.axes import Scale, scale_of
from ganlab_compare.brief import best_first, main_metric
from ganlab_compare.comparison import Comparison
from ganlab_compare.configurations import Configuration
from ganlab_compare.curves import Curve, read_curves
from ganlab_compare.loaded_runs import RunSummary
from ganlab_compare.metric_rows import read_series
from ganlab_compare.metrics import Metric
from ganlab_compare.pages import page
from ganlab_compare.provenances import origins
from ganlab_compare.samples import embedded, newest, step_of
from ganlab_compare.table import estimated, number, statuses, text_of
from ganlab_compare.verdicts import RULE, in_brief

# More bands than these hide each other, a longer legend the chart, and more metrics are wider than a printed page.
_MOST_BANDS, _LONG_LEGEND, _MOST_ON_PAPER = 8, 12, 3
# Many pictures are drawn smaller; beyond the most, each would be too small to show anything.
_MANY_PICTURES, _MOST_PICTURES = 24, 120
# Where the bars of intervals begin and end, in units of their drawing.
_BAR = (3.0, 117.0)


@dataclass(frozen=True)
class _Column:
    """A metric's column.

    Attributes:
        tag: The metric.
        better: Which values are better, in words; empty if that is unknown.
        leading: The best mean; None if the better direction is unknown, or if there is one mean only.
        reference: The configuration that probabilities of improvement are against; None if there are none.
        scale: The scale of its bars.
        remark: How to read the column.
    """

    tag: str
    better: str
    leading: float | None
    reference: str | None
    scale: Scale
    remark: str


def to_html(comparison: Comparison) -> str:
    """The report on a comparison, as the text of an HTML file.

    Everything that comes from runs is text or a picture in it: a policy of the page itself forbids scripts, and
    everything that is not in the file.

    Args:
        comparison: The comparison to report.

    Raises:
        RunError: A run's metrics cannot be read.
    """
    rows = comparison.configurations
    runs = [run for row in rows for run in row.runs]
    best = best_first(comparison)
    found = ((run.path, newest(run.path)) for row in best for run in row.runs)
    pictures = dict(islice(((path, picture) for path, picture in found if picture), _MOST_PICTURES))
    return page(
        "ganlab_compare",
        "report.html",
        title=f"Comparison: {counted(len(rows), 'configuration')}, {counted(len(runs), 'run')}",
        style=_switching_rules(len(rows)),
        comparison=comparison,
        best=best,
        main=main_metric(comparison),
        columns=[_column(comparison, metric) for metric in comparison.metrics],
        curves_and_spreads=_charts(comparison),
        pictures=list(_samples(comparison, pictures)),
        many_pictures=len(pictures) > _MANY_PICTURES,
        cut_pictures=_MOST_PICTURES if len(pictures) == _MOST_PICTURES else None,
        origins=origins(runs),
        unchecked=sum(run.health is None for run in runs),
        scale_of_shares=scale_of([0.0, 1.0], *_BAR, tight=True),
        most_bands=_MOST_BANDS,
        long_legend=_LONG_LEGEND,
        most_on_paper=_MOST_ON_PAPER,
        mark=MARK,
        rule=RULE,
        changes_in_brief=changes_in_brief,
        counted=counted,
        estimated=estimated,
        health_in_brief=health_in_brief,
        in_brief=in_brief,
        in_time=in_time,
        look=charts.look,
        marker_shape=charts.marker_shape,
        number=number,
        statuses=statuses,
        text_of=text_of,
    )


def changes_in_brief(changes: Sequence[Change]) -> str:
    """Changes for a cell of a table: `at step 2`, `at steps 2, 40`; empty for none."""
    steps = list(dict.fromkeys(change.step for change in changes))
    return f"at step{'s' if len(steps) > 1 else ''} {', '.join(map(str, steps))}" if steps else ""


def _switching_rules(count: int) -> str:
    """The style rules that hide series with an unticked box, and dim all but the one under the pointer."""
    rules = []
    for place in range(count):
        off = f":root:has(#show-{place}:not(:checked))"
        rules.append(f"{off} .chart .c{place} {{ display: none; }}")
        rules.append(f"{off} .legend .l{place} {{ opacity: 0.45; text-decoration: line-through; }}")
        rules.append(f"figure:has(.l{place}:hover) :is(.series, .band):not(.c{place}) {{ opacity: 0.12; }}")
    return "\n".join(rules)


def _column(comparison: Comparison, metric: Metric) -> _Column:
    estimates = [one for (_, tag), one in comparison.estimates.items() if tag == metric.tag]
    means = [one.mean for one in estimates]
    ends = [end for one in estimates for end in (one.low, one.high) if end is not None]
    scale = scale_of(means, *_BAR, bands=ends)
    better = {"max": "higher is better", "min": "lower is better", None: ""}[metric.direction]
    remarks = [better] if better else []
    if scale.logarithmic:
        remarks.append(f"bars: logarithmic, {number(scale.low)} to {number(scale.high)}")
    if any(not scale.low <= end <= scale.high for end in ends):
        remarks.append("intervals that reach further are cut, with an arrow")
    winner = comparison.winner(metric) if metric.direction and len(means) > 1 else None
    leading = comparison.estimates[winner, metric.tag].mean if winner else None
    reference = next((one.against for (_, tag), one in comparison.improvement.items() if tag == metric.tag), None)
    return _Column(metric.tag, better, leading, reference, scale, "; ".join(remarks))


def _charts(comparison: Comparison) -> tuple[list[charts.Chart], list[charts.Chart]]:
    """The charts of means and those of spreads over replicas, from one look at each run's rows."""
    tags = [metric.tag for metric in comparison.metrics]
    curves: dict[tuple[str, bool], dict[int, Curve]] = {(tag, spread): {} for spread in (False, True) for tag in tags}
    rows = functools.cache(lambda path: read_series(path, tags))
    for place, row in enumerate(comparison.configurations):
        rows.cache_clear()
        alone = replace(comparison, configurations=(row,))
        for (tag, spread), of in curves.items():
            for curve in read_curves(alone, tag, replicas=spread, read=lambda path, _: rows(path)):
                of[place] = curve
    made: tuple[list[charts.Chart], list[charts.Chart]] = [], []
    for (tag, spread), of in curves.items():
        name, quantity = ("replicas", "max - min over replicas") if spread else ("curve", "mean over runs")
        if of:
            name, bands = f"{name}-{tags.index(tag)}", len(of) <= _MOST_BANDS
            made[spread].append(charts.chart(of, name=name, tag=tag, quantity=quantity, bands=bands))
    return made


def _samples(
    comparison: Comparison, pictures: dict[Path, Path]
) -> Iterator[tuple[int, Configuration, list[tuple[RunSummary, str, str]]]]:
    """The configurations that have pictures, with their numbers, and of each run its picture's caption and address."""
    for place, row in enumerate(comparison.configurations):
        pictured = []
        for run in row.runs:
            picture = pictures.get(run.path)
            address = embedded(picture, of=len(pictures)) if picture else None
            if picture is None or address is None:
                continue
            caption = "seed unknown" if run.seed is None else f"seed {run.seed}"
            step = step_of(picture)
            pictured.append((run, caption if step is None else f"{caption}, step {step}", address))
        if pictured:
            yield place, row, pictured
