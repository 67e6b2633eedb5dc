"""Charts as SVG elements: lines with bands, their keys, and the bar of an interval.

Colours, fonts and dashes are left to a style sheet: a drawing only marks which series an element belongs to, and is
crisp at any width. Series never differ by colour alone: each has a dash and a marker too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

import numpy as np

from ganlab.comparing.axes import Scale, scale_of
from ganlab.comparing.html import element

# The numbers of colours and dashes in the style sheet. Dash and marker make 20 series distinct without any colour.
COLOURS, DASHES = 6, 4
_MARKERS = (
    "M-3,0a3,3 0 1,0 6,0a3,3 0 1,0 -6,0",
    "M-2.7,-2.7h5.4v5.4h-5.4z",
    "M0,-3.6L3.4,2.5H-3.4z",
    "M0,-3.9L3.9,0L0,3.9L-3.9,0z",
    "M0,3.6L3.4,-2.5H-3.4z",
)

# In units of the drawing. There is room for text of size 12.5, as on phones; on wider screens it is smaller.
_WIDTH, _HEIGHT = 400, 250
_TOP, _RIGHT, _BOTTOM = 26, 18, 42
_CHARACTER = 7.0
_MARKED = 5


@dataclass(frozen=True)
class Line:
    """One series of a chart.

    Attributes:
        number: The number of the series; decides colour, dash and marker.
        x: `(n,)`, rising.
        y: `(n,)`; the line has a gap where it is not finite.
        low: The lower edge of the band, `(n,)`; the band has a gap where an edge is not finite.
        high: The upper edge, `(n,)`.
    """

    number: int
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray


def series_class(number: int) -> str:
    """The classes of a series' elements: `c<number>`, and those of its colour and dash."""
    return f"c{number} k{number % COLOURS} d{number % DASHES}"


def chart(
    lines: Sequence[Line], *, name: str, title: str, description: str, across: str, up: str, bands: bool = True
) -> ET.Element:
    """Lines over a common axis.

    Args:
        lines: The lines to draw; at least one.
        name: A word that is unique on the page.
        title: The subject of the chart, for screen readers.
        description: A description of the curves, for screen readers.
        across: The horizontal axis' label, with its unit.
        up: The vertical axis' label, with its unit.
        bands: Whether to draw bands; without them there are many lines, and they are thinner.

    Returns:
        The `svg`. The vertical axis is logarithmic, and labelled so, if positive values span decades.
    """
    edges = [edge for line in lines for edge in (line.low, line.high)] if bands else []
    vertical = scale_of(
        np.concatenate([line.y for line in lines]),
        _HEIGHT - _BOTTOM,
        _TOP,
        bands=np.concatenate(edges) if edges else (),
    )
    marks = vertical.ticks()
    left = 10 + _CHARACTER * max((len(text) for _, text in marks), default=1)
    horizontal = scale_of(np.concatenate([line.x for line in lines]), left, _WIDTH - _RIGHT, tight=True)
    drawing = element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", description, id=f"{name}-desc"),
        *_grid(horizontal, vertical, marks),
        element("text", up + (" (logarithmic)" if vertical.logarithmic else ""), x=2, y=12, class_="label"),
        element("text", across, x=_WIDTH - _RIGHT, y=_HEIGHT - 6, class_="label end"),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        class_="chart" if bands else "chart crowded",
    )
    # All bands first: none may hide a line.
    if bands:
        drawing.extend(_band(line, horizontal, vertical) for line in lines)
    drawing.extend(_line(line, horizontal, vertical, place, len(lines)) for place, line in enumerate(lines))
    return drawing


def key(number: int) -> ET.Element:
    """A short piece of a series' line with its marker, for a legend."""
    return element(
        "svg",
        element("path", d="M0,6H30", class_="line"),
        _marker(number, 15, 6),
        viewBox="0 0 30 12",
        class_="key " + series_class(number).split(" ", 1)[1],
        aria_hidden="true",
    )


def interval(mean: float, low: float, high: float, scale: Scale) -> ET.Element:
    """An interval as a bar with a dot, on a scale that the rows of a column share; only the dot if there is none.

    An end beyond the scale has an arrow.
    """
    at, start, end = (float(scale.place(value)) for value in (mean, low, high))
    bar = element("path", d=f"M{start:.1f},5H{end:.1f}", class_="bar") if np.isfinite(start + end) else None
    dot = element("circle", cx=f"{at:.1f}", cy=5, r=2.6) if np.isfinite(at) else None
    rail = element("path", d=f"M{scale.start:.0f},5H{scale.end:.0f}", class_="rail")
    width = scale.start + scale.end
    arrows = [element("path", d=f"M{scale.start:.1f},5l5,-3v6z", class_="beyond")] if low < scale.low else []
    arrows += [element("path", d=f"M{scale.end:.1f},5l-5,-3v6z", class_="beyond")] if high > scale.high else []
    return element("svg", rail, bar, *arrows, dot, viewBox=f"0 0 {width:g} 10", class_="interval", aria_hidden="true")


def _grid(horizontal: Scale, vertical: Scale, marks: list[tuple[float, str]]) -> Iterator[ET.Element]:
    left, right = horizontal.start, horizontal.end
    for value, text in marks:
        y = float(vertical.place(value))
        yield element("path", d=f"M{left:.1f},{y:.1f}H{right:.1f}", class_="grid")
        yield element("text", text, x=f"{left - 5:.1f}", y=f"{y + 4:.1f}", class_="tick end")
    for value, text in horizontal.ticks():
        x = float(horizontal.place(value))
        yield element("path", d=f"M{x:.1f},{vertical.start:.1f}v4", class_="axis")
        yield element("text", text, x=f"{x:.1f}", y=f"{vertical.start + 17:.1f}", class_="tick middle")
    yield element("path", d=f"M{left:.1f},{vertical.start:.1f}H{right:.1f}", class_="axis")


def _band(line: Line, horizontal: Scale, vertical: Scale) -> ET.Element:
    x, low, high = horizontal.place(line.x), vertical.place(line.low), vertical.place(line.high)
    parts = []
    for piece in _pieces(np.isfinite(line.low) & np.isfinite(line.high)):
        around = np.concatenate([x[piece], x[piece][::-1]]), np.concatenate([high[piece], low[piece][::-1]])
        parts.append(_path(*around) + "z")
    return element("path", d="".join(parts) or None, class_=f"band {series_class(line.number)}")


def _line(line: Line, horizontal: Scale, vertical: Scale, place: int, of: int) -> ET.Element:
    x, y = horizontal.place(line.x), vertical.place(np.where(np.isfinite(line.y), line.y, np.nan))
    path = "".join(_path(x[piece], y[piece]) for piece in _pieces(np.isfinite(y)))
    # Markers of different lines stand at different steps, so that lines on top of each other can be distinguished.
    there = np.flatnonzero(np.isfinite(y))
    where = (np.arange(_MARKED) + (place + 0.5) / of) / _MARKED * len(there)
    marked = np.unique(there[where.astype(int)]) if len(there) else there
    return element(
        "g",
        element("path", d=path or None, class_="line"),
        *(_marker(line.number, x[i], y[i]) for i in marked),
        class_=f"series {series_class(line.number)}",
    )


def _marker(number: int, x: float, y: float) -> ET.Element:
    shape = _MARKERS[number % len(_MARKERS)]
    return element("path", d=shape, transform=f"translate({x:.1f},{y:.1f})", class_="marker")


def _pieces(whole: np.ndarray) -> Iterator[slice]:
    """The stretches of a boolean array that are true throughout."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], whole, [False]]).astype(np.int8)))
    return (slice(start, end) for start, end in edges.reshape(-1, 2).tolist())


def _path(x: np.ndarray, y: np.ndarray) -> str:
    return "M" + "L".join(f"{across:.1f},{up:.1f}" for across, up in zip(x.tolist(), y.tolist(), strict=True))
