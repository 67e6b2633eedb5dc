"""Pictures as PNG bytes: curves over depth, histograms, a critic's surface over the plane, samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ganlab.telemetry.plots import (
    FAKE,
    REAL,
    axes_of,
    draw_points,
    heights_over,
    image_grid,
    page,
    scatter,
    series,
    square_around,
)

_COLOURS = (FAKE, REAL, "#2a8c5a", "#a03070")
_HALF_LEVELS = 12


def over_depth(
    curves: Mapping[str, Sequence[Sequence[float]]], layers: Sequence[str], *, quantity: str, title: str = ""
) -> bytes:
    """Curves over the layers of a network, input to output, on a logarithmic scale.

    Args:
        curves: The values of the layers by label, `(1 + replicas, layers)`: one line for all replicas, drawn bold, and
            one for each replica. Values that are not positive have no point.
        layers: The layers' names.
        quantity: The name of the quantity.
        title: The picture's title.

    Returns:
        A PNG of 700 x 450 pixels.
    """
    many = len(layers) > 5
    with axes_of(7, 4.5, (0.11, 0.24, 0.86, 0.66) if many else (0.11, 0.09, 0.86, 0.81)) as (axes, encoded):
        depth = np.arange(1, len(layers) + 1)
        for (label, lines), colour in zip(curves.items(), _COLOURS, strict=False):
            whole, *replicas = (_positive(line) for line in lines)
            if len(replicas) > 1:
                for line in replicas:
                    axes.plot(depth, line, color=colour, linewidth=0.8, alpha=0.45)
            axes.plot(depth, whole, color=colour, linewidth=1.8, marker="o", markersize=4, label=label)
        drawn = np.concatenate([_positive(line) for lines in curves.values() for line in lines])
        exponents = np.log10(drawn[np.isfinite(drawn)])
        axes.set_yscale("log")
        if len(exponents):  # whole decades, so that flat curves look flat
            axes.set_ylim(10 ** np.floor(exponents.min() - 0.1), 10 ** np.ceil(exponents.max() + 0.1))
        axes.minorticks_off()
        axes.set_ylabel(quantity, fontsize=9)
        axes.set_xticks(depth, layers, rotation=45 if many else 0, ha="right" if many else "center")
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.set_title(title, fontsize=9, loc="left", y=1.01, color="#555555")
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=len(curves), frameon=False, fontsize=9)
        return encoded()


def histogram(values: np.ndarray, *, quantity: str, title: str = "", bins: int = 101) -> bytes:
    """A histogram of values, as densities, on bins of equal width around zero.

    Args:
        values: Of any shape; values that are not finite are left out.
        quantity: The name of the quantity.
        title: The picture's title.
        bins: The number of bins; odd, so that zero is in the middle of one.

    Returns:
        A PNG of 700 x 450 pixels.
    """
    with axes_of(7, 4.5, (0.11, 0.12, 0.86, 0.78)) as (axes, encoded):
        flat = np.asarray(values, np.float64).ravel()
        flat = flat[np.isfinite(flat)]
        side = max(float(np.abs(flat).max(initial=0.0)), 1e-12)
        axes.hist(flat, bins=np.linspace(-side, side, bins + 1), density=True, color=FAKE)
        axes.set_xlabel(quantity, fontsize=9)
        axes.set_ylabel("density", fontsize=9)
        axes.ticklabel_format(axis="both", style="sci", scilimits=(-2, 4))
        axes.set_title(title, fontsize=9, loc="left", y=1.01, color="#555555")
        return encoded()


def surface(heights: Any, low: np.ndarray, high: np.ndarray, real: np.ndarray, fake: np.ndarray) -> bytes:
    """A critic's scores over a square of the plane as coloured levels, with real points and samples.

    Args:
        heights: The scores, `(rows, columns)`, rows from the bottom up, as `heights_over` returns them.
        low: The square's lower left corner, `(2,)`.
        high: Its upper right corner, `(2,)`.
        real: The real points, `(n, 2)`.
        fake: The samples, `(m, 2)`.

    Returns:
        A PNG of 720 x 600 pixels.
    """
    with axes_of(7.2, 6, (0.06, 0.06, 0.8, 0.86)) as (axes, encoded):
        heights = np.ma.masked_invalid(heights)
        rows, columns = heights.shape
        across, up = np.linspace(low[0], high[0], columns), np.linspace(low[1], high[1], rows)
        if heights.count() and heights.max() > heights.min():
            levels = np.linspace(heights.min(), heights.max(), 2 * _HALF_LEVELS + 1)
            filled = axes.contourf(across, up, heights, levels=levels, cmap="Greens", alpha=0.6)
            axes.contour(across, up, heights, levels=levels, colors="#777777", linewidths=0.5, linestyles="solid")
            bar = axes.figure.colorbar(filled, cax=axes.figure.add_axes((0.88, 0.06, 0.025, 0.86)), format="%.3g")
            bar.ax.tick_params(labelsize=8, colors="#555555")
            bar.ax.set_title("score", fontsize=8, color="#555555")
        draw_points(axes, real, fake, low, high)
        return encoded()


def ways_through(real: np.ndarray | None, samples: np.ndarray, columns: int) -> bytes:
    """Samples in the plane, joined to paths, and real points.

    Args:
        real: The real points, `(n, 2)`; None for none.
        samples: The samples, `(m, 2)`, path by path.
        columns: Samples of a path.

    Returns:
        A PNG of 600 x 600 pixels.
    """
    low, high = square_around(samples if real is None else real)
    with axes_of(6, 6, (0.08, 0.06, 0.88, 0.86)) as (axes, encoded):
        for way in samples.reshape(-1, columns, 2):
            axes.plot(way[:, 0], way[:, 1], color=FAKE, linewidth=0.9, alpha=0.7)
        draw_points(axes, real, samples, low, high)
        return encoded()


def _positive(values: Sequence[float]) -> np.ndarray:
    line = np.asarray(values, np.float64)
    return np.where(np.isfinite(line) & (line > 0), line, np.nan)


__all__ = [
    "heights_over",
    "histogram",
    "image_grid",
    "over_depth",
    "page",
    "scatter",
    "series",
    "square_around",
    "surface",
    "ways_through",
]
