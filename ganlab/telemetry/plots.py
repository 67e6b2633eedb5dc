"""Pictures of samples as PNG bytes: a grid of images, or points in the plane with the critic's level lines."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ganlab.lazy import require
from ganlab.support.signals import undisturbed
from ganlab.support.terminal import line

Array = npt.NDArray[Any]
Critic = Callable[[Array], Array]

# Images smaller than this are enlarged by a whole factor, so that 8x8 digits can be seen.
_TILE_PIXELS = 64
_GAP_PIXELS = 2
_GAP_GREY = 128

# Level lines as in the surfaces of Gulrajani et al. 2017, figure 2, on 128 x 128 points.
_SURFACE_POINTS = 128
_LEVELS = 18
_MARGIN = 0.15

# Characters of a text.
_WIDEST = 200

REAL, FAKE = "#e8871e", "#1f5fa8"


def picture(
    samples: Array, real: Array | None = None, critic: Critic | None = None, sources: Array | None = None
) -> bytes | None:
    """The picture that suits the samples' shape.

    Args:
        samples: Samples of the generator, `(n, h, w, 1 or 3)` in [-1, 1] or `(n, 2)`.
        real: Real examples of the same shape, needed for points.
        critic: Scores points `(k, 2)`, returning `(k,)`; not used for images.
        sources: Images as in `image_grid`; not used for points.

    Returns:
        A PNG, or None if samples of this shape have no picture.
    """
    if samples.ndim == 4 and samples.shape[-1] in (1, 3):
        return image_grid(samples, sources=sources)
    if samples.ndim == 2 and samples.shape[1] == 2 and real is not None:
        return scatter(real, samples, critic)
    return None


def image_grid(samples: Array, columns: int | None = None, sources: Array | None = None) -> bytes:
    """Images side by side, enlarged without smoothing where they are small.

    Args:
        samples: `(n, h, w, c)` with c = 1 (grey) or 3 (RGB), from -1 (black) to 1; values beyond are clipped, NaN is
            drawn mid-grey.
        columns: Images in a row; by default as many as make the grid square.
        sources: What each was made from. Where these are images of the same size, each stands before its sample.

    Returns:
        A PNG of 8 bits, grey or RGB.

    Raises:
        ValueError: The samples do not have such a shape.
    """
    if samples.ndim != 4 or not len(samples) or samples.shape[-1] not in (1, 3):
        raise ValueError(f"images have shape {samples.shape}; they must be (n, h, w, 1 or 3) with n at least 1")
    if sources is not None and sources.shape[:-1] == samples.shape[:-1] and sources.shape[-1] in (1, 3):
        pairs = np.stack(np.broadcast_arrays(sources, samples), axis=1)
        return image_grid(pairs.reshape(-1, *pairs.shape[2:]), 2 * (columns or math.ceil(math.sqrt(len(pairs) / 2))))
    count, height, width, channels = samples.shape
    columns = columns or math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    bright = np.nan_to_num(np.asarray(samples, np.float32), nan=0.0).clip(-1.0, 1.0)
    tiles = np.rint((bright + 1.0) * 127.5).astype(np.uint8)
    scale = max(1, _TILE_PIXELS // max(height, width))
    tiles = tiles.repeat(scale, axis=1).repeat(scale, axis=2)
    down, across = height * scale + _GAP_PIXELS, width * scale + _GAP_PIXELS
    canvas = np.full((rows * down + _GAP_PIXELS, columns * across + _GAP_PIXELS, channels), _GAP_GREY, np.uint8)
    for index, tile in enumerate(tiles):
        top, left = (index // columns) * down + _GAP_PIXELS, (index % columns) * across + _GAP_PIXELS
        canvas[top : top + tile.shape[0], left : left + tile.shape[1]] = tile
    from PIL import Image  # a dependency of Matplotlib

    png = io.BytesIO()
    Image.fromarray(canvas.squeeze(-1) if channels == 1 else canvas).save(png, "PNG")
    return png.getvalue()


def page(shown: Array | list[str], columns: int | None = None) -> bytes:
    """A PNG of what a dataset shows: a grid of images, or texts below each other, each cut to 200 characters.

    In texts everything that is not printable, or not of Latin 1, is drawn as an escape.
    """
    if not isinstance(shown, list):
        return image_grid(shown, columns)
    from PIL import Image, ImageDraw, ImageFont

    text = "\n".join(line(each)[:_WIDEST].encode("latin-1", "backslashreplace").decode("latin-1") for each in shown)
    font = ImageFont.load_default(size=14)
    _, _, right, bottom = ImageDraw.Draw(Image.new("L", (1, 1))).multiline_textbbox((8, 8), text, font)
    image, png = Image.new("L", (math.ceil(right) + 8, math.ceil(bottom) + 8), 255), io.BytesIO()
    ImageDraw.Draw(image).multiline_text((8, 8), text, 0, font)
    image.save(png, "PNG")
    return png.getvalue()


def series(x: Array, height: int = 64) -> Array:
    """Series `(n, length)`, or `(n, length, lines)`, as images `(n, height, width, 1)` of lines, all of one scale.

    A line is 1, the rest -1; values that are not finite are zero. The width is twice the height, or the length if that
    is more.
    """
    lines = np.nan_to_num(np.asarray(x, np.float64).reshape(*x.shape[:2], -1), posinf=0.0, neginf=0.0)
    places = np.linspace(0, lines.shape[1] - 1, max(2 * height, lines.shape[1]))
    before, after = np.floor(places).astype(int), np.ceil(places).astype(int)
    at = lines[:, before] + (places - before)[:, None] * (lines[:, after] - lines[:, before])
    rows = np.rint((lines.max() - at) / max(np.ptp(lines), 1e-12) * (height - 1))
    last = np.concatenate([rows[:, :1], rows[:, :-1]], axis=1)  # a column reaches to where the one before it ended
    row = np.arange(height)[:, None, None]
    ink = (row >= np.minimum(rows, last)[:, None]) & (row <= np.maximum(rows, last)[:, None])
    return np.where(ink.any(axis=-1), 1.0, -1.0).astype(np.float32)[..., None]


def scatter(real: Array | None, fake: Array, critic: Critic | None = None) -> bytes:
    """Real points and samples in the plane, over the critic's level lines.

    The picture's range is that of the real points with a margin, so that pictures of one run can be compared; the
    legend states how many samples lie outside. Without real points it is that of the samples.

    Args:
        real: `(n, 2)`, or None to draw samples alone.
        fake: `(m, 2)`; points that are not finite count as outside.
        critic: Scores points `(k, 2)` float32, returning `(k,)`; None draws no lines.

    Returns:
        A PNG of 600 x 600 pixels.
    """
    low, high = square_around(fake if real is None else real)
    heights = None if critic is None else heights_over(critic, low, high)
    with undisturbed(), axes_of(6, 6, (0.08, 0.06, 0.88, 0.86)) as (axes, encoded):
        # A critic that is flat or not finite has no lines to draw.
        if heights is not None and heights.count() and heights.max() > heights.min():
            across, up = _sides(low, high)
            axes.contour(across, up, heights, levels=_LEVELS, cmap="Greys", linewidths=0.8, alpha=0.8)
        draw_points(axes, real, fake, low, high)
        return encoded()


@contextlib.contextmanager
def axes_of(
    width: float, height: float, place: tuple[float, float, float, float]
) -> Iterator[tuple[Any, Callable[[], bytes]]]:
    """Context manager: axes of a figure of its own, not pyplot's: no global state, no window system.

    Inside, Matplotlib's own settings hold: those of a `matplotlibrc` may start LaTeX, and the working directory's may
    be a stranger's.

    Args:
        width: The figure's width, in hundreds of pixels.
        height: Its height, likewise.
        place: Left, bottom, width and height of the axes as fractions of the figure.

    Yields:
        Matplotlib's axes, and a function that returns the figure as a PNG.
    """
    matplotlib = require("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        figure = Figure(figsize=(width, height), dpi=100, facecolor="white")
        canvas = FigureCanvasAgg(figure)
        axes = figure.add_axes(place)
        axes.set_title("", y=1.01)  # with a fixed position, or Matplotlib measures every tick for it
        axes.tick_params(labelsize=8, colors="#555555")
        for spine in axes.spines.values():
            spine.set_color("#bbbbbb")

        def encoded() -> bytes:
            png = io.BytesIO()
            canvas.print_png(png)
            return png.getvalue()

        yield axes, encoded


def draw_points(axes: Any, real: Array | None, fake: Array, low: Array, high: Array) -> None:
    """Draws real points and samples within a square, and a legend that states how many samples lie outside."""
    with np.errstate(invalid="ignore"):
        inside = ((fake >= low) & (fake <= high)).all(axis=1)
    outside = len(fake) - int(inside.sum())
    label = "samples" + (f" ({outside} of {len(fake)} outside)" if outside else "")
    if real is not None:
        axes.scatter(real[:, 0], real[:, 1], s=9, c=REAL, alpha=0.55, linewidths=0, label="real")
    axes.scatter(fake[inside, 0], fake[inside, 1], s=9, c=FAKE, alpha=0.55, linewidths=0, label=label)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    legend = axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize=9)
    for handle in filter(None, legend.legend_handles):
        handle.set(alpha=1.0, sizes=[24])


def square_around(points: Array) -> tuple[Array, Array]:
    """The lower left and the upper right corner of the square around finite points of `(n, 2)`, with a margin."""
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        points = np.zeros((1, 2), np.float32)
    low, high = points.min(axis=0), points.max(axis=0)
    half = max(float((high - low).max()) / 2, 1e-3) * (1 + _MARGIN)
    centre = (low + high) / 2
    return centre - half, centre + half


def heights_over(critic: Critic, low: Array, high: Array) -> Any:
    """A critic's scores on 128 x 128 points of a square, rows from the bottom up.

    Args:
        critic: Scores points `(k, 2)` float32, returning `(k,)`.
        low: The lower left corner, `(2,)`.
        high: The upper right corner, `(2,)`.

    Returns:
        A masked array `(128, 128)` float64, masked where a score is not finite.
    """
    points = np.stack(np.meshgrid(*_sides(low, high)), axis=-1)
    scores = np.asarray(critic(points.reshape(-1, 2)), np.float64)
    return np.ma.masked_invalid(scores.reshape(points.shape[:2]))


def _sides(low: Array, high: Array) -> tuple[Array, Array]:
    across, up = (np.linspace(low[i], high[i], _SURFACE_POINTS, dtype=np.float32) for i in (0, 1))
    return across, up
