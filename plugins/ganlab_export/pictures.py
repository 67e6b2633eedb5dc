"""Pictures of samples drawn after training: a grid of images, points in the plane, or paths through it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ganlab.errors import GanlabError, IncompatibleError
from ganlab.pictures import image_grid, scatter, ways_through
from ganlab.runs import RunDirectory

if TYPE_CHECKING:
    from ganlab_export.drawing import Drawn

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
        return image_grid(drawn.samples, columns, drawn.given.get("source"))
    real = _real(run)
    return ways_through(real, drawn.samples, columns or 1) if ways else scatter(real, drawn.samples)


def _real(run: RunDirectory) -> Any:
    from ganlab.engine import first_examples, make

    try:
        arguments = run.recipe(only=("dataset", "seed")).arguments
        return first_examples(make(arguments["dataset"]), _REAL, int(arguments.get("seed", 0)))
    except GanlabError as error:
        warnings.warn(f"The picture shows no real points. {error}", stacklevel=3)
        return None
