"""Charts of curves over steps, as numbers for the template that draws them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ganlab_compare.axes import Scale, scale_of
from ganlab_compare.curves import Curve

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
WIDTH, HEIGHT = 400, 250
_TOP, _RIGHT, _BOTTOM = 26, 18, 42
_CHARACTER = 7.0
_MARKED = 5


@dataclass(frozen=True)
class Line:
    """One series of a chart, in the drawing's coordinates.

    Attributes:
        number: The number of the series, which decides its colour, dash and marker.
        path: The line.
        band: The outline of its band.
        markers: Where its markers stand.
    """

    number: int
    path: str
    band: str
    markers: list[tuple[float, float]]


@dataclass(frozen=True)
class Chart:
    """Lines over a common axis.

    Attributes:
        name: A word that is unique on the page.
        tag: The metric.
        quantity: The label of the vertical axis.
        description: The curves in words, for screen readers.
        bands: Whether bands are drawn; without them there are many lines, and they are thinner.
        horizontal: The scale of steps.
        vertical: The scale of values.
        lines: The lines.
    """

    name: str
    tag: str
    quantity: str
    description: str
    bands: bool
    horizontal: Scale
    vertical: Scale
    lines: list[Line]
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def numbers(self) -> set[int]:
        """The numbers of the series that are drawn."""
        return {line.number for line in self.lines}


def chart(curves: Mapping[int, Curve], *, name: str, tag: str, quantity: str, bands: bool = True) -> Chart:
    """Draws curves over a common axis, logarithmic if positive values span decades.

    Args:
        curves: The curves by the numbers of their series; at least one.
        name: A word that is unique on the page.
        tag: The metric.
        quantity: The vertical axis' label.
        bands: Whether to draw bands.
    """
    drawn = curves.values()
    edges = [edge for curve in drawn for edge in (curve.low, curve.high)] if bands else [()]
    means = np.concatenate([curve.mean for curve in drawn])
    vertical = scale_of(means, HEIGHT - _BOTTOM, _TOP, bands=np.concatenate(edges))
    left = 10 + _CHARACTER * max((len(text) for _, text in vertical.ticks()), default=1)
    horizontal = scale_of(np.concatenate([curve.steps for curve in drawn]), left, WIDTH - _RIGHT, tight=True)
    lines = [
        _line(number, curve, horizontal, vertical, (place + 0.5) / len(curves))
        for place, (number, curve) in enumerate(curves.items())
    ]
    words = " ".join(map(_in_words, drawn))
    return Chart(name, tag, quantity, words, bands, horizontal, vertical, lines)


def look(number: int) -> str:
    """The classes of a series' colour and dash."""
    return f"k{number % COLOURS} d{number % DASHES}"


def marker_shape(number: int) -> str:
    """The path of a series' marker around the origin."""
    return _MARKERS[number % len(_MARKERS)]


def _line(number: int, curve: Curve, horizontal: Scale, vertical: Scale, offset: float) -> Line:
    x = horizontal.place(curve.steps)
    y, low, high = (vertical.place(values) for values in (curve.mean, curve.low, curve.high))
    band = _path(np.append(x, x[::-1]), np.append(high, low[::-1])) + "z"
    # Markers of different lines stand at different steps, so that lines on top of each other can be distinguished.
    marked = np.unique(((np.arange(_MARKED) + offset) / _MARKED * len(x)).astype(int))
    return Line(number, _path(x, y), band, [(x[i], y[i]) for i in marked])


def _path(x: np.ndarray, y: np.ndarray) -> str:
    return "M" + "L".join(f"{across:.1f},{up:.1f}" for across, up in zip(x.tolist(), y.tolist(), strict=True))


def _in_words(curve: Curve) -> str:
    (first, start), (last, end) = ((curve.mean[i], curve.steps[i]) for i in (0, -1))
    return f"{curve.label}: {first:.4g} at step {start}, {last:.4g} at step {end}."
