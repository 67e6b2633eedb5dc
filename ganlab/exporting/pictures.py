"""Pictures of samples drawn after training: a grid of images, points in the plane, or paths through it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ganlab.composition import make
from ganlab.errors import GanlabError, IncompatibleError
from ganlab.runs import RunDirectory
from ganlab.telemetry.plots import FAKE, axes_of, draw_points, image_grid, scatter, square_around

if TYPE_CHECKING:
    from ganlab.exporting.drawing import Drawn

# The number of real points, as in training's own pictures.
_REAL = 1000


def check_picture(shape: Sequence[int]) -> None:
    """Checks that samples of this shape can be drawn.

    Raises:
        IncompatibleError: They cannot.
    """
    if not (are_points(shape) or (len(shape) == 3 and shape[-1] in (1, 3))):
        raise IncompatibleError(
            f"Samples of shape {tuple(shape)} have no picture: only images of 1 or 3 channels and points in the plane "
            "do. Write numbers instead, to a file that ends in .npz."
        )


def are_points(shape: Sequence[int]) -> bool:
    """Whether samples of this shape are points in the plane."""
    return tuple(shape) == (2,)


def picture(run: RunDirectory, drawn: Drawn, *, columns: int | None = None, ways: bool = False) -> bytes:
    """Draws samples as training does: images side by side, or points beside real ones.

    Args:
        run: The run that the samples are from; its dataset provides the real points, if it can be made here.
        drawn: The samples.
        columns: Columns of the grid, or samples per path; by default the grid is square.
        ways: Whether every `columns` samples are a path from one latent vector to another; its points are joined.

    Returns:
        A PNG.

    Raises:
        IncompatibleError: Samples of this shape have no picture.
    """
    shape = drawn.samples.shape[1:]
    check_picture(shape)
    if not are_points(shape):
        return image_grid(drawn.samples, columns)
    real = _real(run)
    if not ways:
        return scatter(real, drawn.samples)
    low, high = square_around(drawn.samples if real is None else real)
    with axes_of(6, 6, (0.08, 0.06, 0.88, 0.86)) as (axes, encoded):
        for way in drawn.samples.reshape(-1, columns or 1, 2):
            axes.plot(way[:, 0], way[:, 1], color=FAKE, linewidth=0.9, alpha=0.7)
        draw_points(axes, real, drawn.samples, low, high)
        return encoded()


def _real(run: RunDirectory) -> Any:
    from ganlab.training.graph.sampling import first_examples

    try:
        arguments = run.recipe(only=("dataset", "seed")).arguments
        return first_examples(make(arguments["dataset"]), _REAL, int(arguments.get("seed", 0)))
    except GanlabError as error:
        warnings.warn(f"The picture shows no real points. {error}", stacklevel=3)
        return None
