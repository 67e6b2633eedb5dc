"""Figures as PNG bytes, without pyplot's global state."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

# One look for all: small type, no boxes, colours that a colour-blind reader can distinguish (Okabe and Ito, 2008).
BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#777777"
COLOURS = (BLUE, ORANGE, GREEN, RED, "#cc79a7", "#56b4e9", "#f0e442", "#000000")


def panels(rows: int, columns: int, *, width: float = 3.2, height: float = 3.0, **options: Any) -> tuple[Any, Any]:
    """A figure and its axes, `(rows, columns)`.

    Args:
        rows: Panels down.
        columns: Panels across.
        width: The width of a panel, in inches of 100 pixels.
        height: The height of a panel, likewise.
        options: Options of matplotlib's `Figure.subplots`.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(columns * width, rows * height), dpi=100, facecolor="white", layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for one in axes.flat:
        one.tick_params(labelsize=7, colors="#444444")
        for side in ("top", "right"):
            one.spines[side].set_visible(False)
    return figure, axes


def png(figure: Any) -> bytes:
    """The figure, encoded with few colours: pictures of lines lose nothing, and repositories keep every version."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB").quantize(64)
    encoded = io.BytesIO()
    image.save(encoded, "PNG", optimize=True)
    return encoded.getvalue()
