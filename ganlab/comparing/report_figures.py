"""The figures of a report: curves over steps with their legends, and grids of samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree as ET

import numpy as np

from ganlab.comparing.comparison import Comparison
from ganlab.comparing.curves import Curve
from ganlab.comparing.html import breakable, element
from ganlab.comparing.report_tables import named
from ganlab.comparing.samples import embedded, newest, step_of
from ganlab.comparing.svg import Line, chart, key
from ganlab.comparing.table import number as number_text

# More bands than these hide each other, and a longer legend the chart.
MOST_BANDS, _LONG_LEGEND = 8, 12
_MANY_PICTURES = 24


def switches(labels: Sequence[str]) -> ET.Element:
    """A checkbox for each configuration, which hides it in all charts when unticked."""
    boxes = [
        element(
            "li",
            element(
                "label",
                element("input", type="checkbox", checked=True, id=f"show-{number}", aria_label=label),
                key(number),
                breakable(label),
            ),
        )
        for number, label in enumerate(labels)
    ]
    return element(
        "fieldset",
        element("legend", "Drawn in the charts"),
        element("ul", *boxes, class_="legend"),
    )


def switching_rules(count: int) -> str:
    """The style rules that hide series with an unticked box, and dim all but the one under the pointer."""
    rules = []
    for number in range(count):
        off = f":root:has(#show-{number}:not(:checked))"
        rules.append(f"{off} .chart .c{number} {{ display: none; }}")
        rules.append(f"{off} .legend .l{number} {{ opacity: 0.45; text-decoration: line-through; }}")
        rules.append(f"figure:has(.l{number}:hover) :is(.series, .band):not(.c{number}) {{ opacity: 0.12; }}")
    return "\n".join(rules)


def curve_figure(comparison: Comparison, tag: str, curves: Sequence[Curve], *, name: str, quantity: str) -> ET.Element:
    """A chart of one metric with its title and its legend, in which every configuration has an entry.

    Args:
        comparison: Whose curves.
        tag: The metric.
        curves: Its curves; at least one.
        name: Unique on the page, a word.
        quantity: What is drawn, for the vertical axis.
    """
    numbers = {row.label: number for number, row in enumerate(comparison.configurations)}
    drawn = {curve.label: curve for curve in curves}
    svg = chart(
        [
            Line(
                number=numbers[curve.label],
                x=np.asarray(curve.steps, np.float64),
                y=np.asarray(curve.mean, np.float64),
                low=np.asarray(curve.low, np.float64),
                high=np.asarray(curve.high, np.float64),
            )
            for curve in curves
        ],
        name=name,
        title=f"{tag}, {quantity}, over generator updates",
        description=" ".join(map(_in_words, curves)),
        across="generator updates",
        up=quantity,
        bands=len(curves) <= MOST_BANDS,
    )
    entries = [
        element(
            "li",
            element(
                "label",
                key(number),
                breakable(label if label in drawn else f"{label} (no values)"),
                for_=f"show-{number}",
                class_=f"l{number}",
            ),
        )
        for label, number in numbers.items()
    ]
    legend = element("ul", *entries, class_="legend")
    if len(entries) > _LONG_LEGEND:
        legend = element("details", element("summary", f"Legend, {len(entries)} configurations"), legend)
    return element("figure", element("h3", breakable(tag)), svg, element("figcaption", legend))


def sample_figures(comparison: Comparison) -> Iterator[ET.Element]:
    """For each configuration that has pictures of samples: its name, then the newest picture of each run."""
    pictures = {run.path: newest(run.path) for row in comparison.configurations for run in row.runs}
    count = max(1, sum(picture is not None for picture in pictures.values()))
    for number, row in enumerate(comparison.configurations):
        figures = []
        for run in row.runs:
            picture = pictures[run.path]
            address = embedded(picture, of=count) if picture else None
            if picture is None or address is None:
                continue
            what = "seed unknown" if run.seed is None else f"seed {run.seed}"
            step = step_of(picture)
            caption = what if step is None else f"{what}, step {step}"
            image = element("img", src=address, alt=f"Samples of {run.name}, {row.label}, {caption}")
            figures.append(element("figure", image, element("figcaption", caption)))
        if figures:
            classes = "samples many" if count > _MANY_PICTURES else "samples"
            yield element("div", element("h3", named(number, row.label)), element("div", *figures, class_=classes))


def _in_words(curve: Curve) -> str:
    there = [i for i, value in enumerate(curve.mean) if np.isfinite(value)]
    if not there:
        return f"{curve.label}: no finite values."
    first, last = there[0], there[-1]
    return (
        f"{curve.label}: {number_text(curve.mean[first])} at step {curve.steps[first]}, "
        f"{number_text(curve.mean[last])} at step {curve.steps[last]}."
    )
