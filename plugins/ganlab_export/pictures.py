"""Pictures of samples drawn after training: a grid of images, points in the plane, or paths through it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ganlab import Dataset, new_folder
from ganlab.errors import GanlabError, IncompatibleError
from ganlab.files import as_name, line
from ganlab.pictures import image_grid, page, scatter, ways_through
from ganlab.runs import RunDirectory

if TYPE_CHECKING:
    from ganlab_export.drawing import Drawn

# The number of real points, as in training's own pictures.
_REAL = 1000


def check_picture(shape: Sequence[int], run: RunDirectory | None = None) -> None:
    """Checks that samples of this shape can be drawn, or that the run's dataset may show them.

    Raises:
        IncompatibleError: They cannot.
    """
    drawable = are_points(shape) or (len(shape) == 3 and shape[-1] in (1, 3))
    if not drawable and (run is None or type(_dataset(run)).show is Dataset.show):
        raise IncompatibleError(
            f"Samples of shape {tuple(shape)} have no picture: only images of 1 or 3 channels, points in the plane "
            "and what a dataset shows do. Write numbers instead, to a file that ends in .npz."
        )


def are_points(shape: Sequence[int]) -> bool:
    """Whether samples of this shape are points in the plane."""
    return tuple(shape) == (2,)


def picture(run: RunDirectory, drawn: Drawn, *, columns: int | None = None, ways: bool = False) -> bytes:
    """Draws samples as training does: images side by side, points beside real ones, or as their dataset shows them.

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
    given, shape = as_shown(run, drawn), drawn.samples.shape[1:]
    if given is not None:
        return page(given, columns)
    check_picture(shape)
    if not are_points(shape):
        return image_grid(drawn.samples, columns, drawn.given.get("source"))
    real = _real(run)
    return ways_through(real, drawn.samples, columns or 1) if ways else scatter(real, drawn.samples)


def write_images(folder: Path, run: RunDirectory, drawn: Drawn) -> None:
    """Writes each sample as an image of its own, named by its number and class; the folder appears whole or not at all.

    Raises:
        IncompatibleError: Samples of this shape are no images.
    """
    import tensorflow as tf

    shown = as_shown(run, drawn)
    images, labels = drawn.samples if shown is None else shown, drawn.labels
    if getattr(images, "ndim", 0) != 4 or images.shape[-1] not in (1, 3):
        raise IncompatibleError("Only images go into a folder. Write numbers, to a file that ends in .npz, or a .png.")
    names = run.info.get("class_names") or []
    pixels = ((images + 1) * 127.5).round().clip(0, 255).astype("uint8")
    with new_folder(folder) as part:
        for number, image in enumerate(pixels):
            label = int(labels[number]) if labels is not None and labels.ndim == 1 else len(names)
            of_class = f"-{as_name(names[label])}" if label < len(names) else ""
            (part / f"{number:06d}{of_class}.png").write_bytes(tf.io.encode_png(image).numpy())


def as_shown(run: RunDirectory, drawn: Drawn) -> Any:
    """The samples as the run's dataset shows them, images or texts; None where it does not, or cannot be made here."""
    from ganlab.engine import shown

    return shown(_dataset(run), drawn.samples)


def texts(run: RunDirectory, drawn: Drawn) -> str:
    """The samples as texts, a line each, what is not printable escaped.

    Raises:
        IncompatibleError: The run's dataset shows no texts.
    """
    given = as_shown(run, drawn)
    if not isinstance(given, list):
        raise IncompatibleError(
            "The dataset of this run shows its samples as no text. Write a picture, to a file that ends in .png, or "
            "numbers, .npz."
        )
    return "".join(f"{line(text)}\n" for text in given)


def _dataset(run: RunDirectory) -> Dataset:
    """The run's dataset, or one that shows nothing where it cannot be made here."""
    from ganlab.engine import make

    try:
        made: Dataset = make(run.recipe(only=("dataset",)).arguments["dataset"])
    except GanlabError:  # then samples are drawn by their shape
        return Dataset()
    return made


def _real(run: RunDirectory) -> Any:
    from ganlab.engine import first_examples, make

    try:
        arguments = run.recipe(only=("dataset", "seed")).arguments
        return first_examples(make(arguments["dataset"]), _REAL, int(arguments.get("seed", 0)))
    except GanlabError as error:
        warnings.warn(f"The picture shows no real points. {error}", stacklevel=3)
        return None
