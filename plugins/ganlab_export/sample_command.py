"""`ganlab sample`: draws samples from the generator of an existing run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ganlab import Run
from ganlab.commands import (
    GENERATOR_SETTINGS,
    LocalPath,
    RunsPath,
    checkpoint_option,
    run_with_plugins,
    say,
    start_tensorflow,
)
from ganlab.files import check_free, line, new_file

if TYPE_CHECKING:
    from ganlab.engine import Step
    from ganlab_export import Drawn

_ENDINGS = (".png", ".npz", ".txt")
# As many images as the sample pictures of training show.
_IMAGES, _POINTS = 64, 1000
_ROWS = _COLUMNS = 8
_OF_CLASS = 10


@click.command("sample")
@click.argument("run", metavar="RUN", type=RunsPath())
@click.option(
    "-n", "count", type=click.IntRange(1), help="Number of samples; by default 64, or 1000 points in the plane."
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=LocalPath(),
    required=True,
    help="File to write: a picture (.png), numbers (.npz), or texts (.txt); a name without an ending is a new "
    "folder of images, one file each.",
)
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Seed of the samples; by default the run's seed.")
@click.option(
    "--truncation",
    type=click.FloatRange(0.01),
    metavar="T",
    help="Redraw every latent entry whose magnitude exceeds T: less variety, more typical samples.",
)
@checkpoint_option
@click.option(
    "--label",
    "labels",
    metavar="CLASS",
    multiple=True,
    help="Class to draw from a conditional generator, by name or number; repeat it for several. By default a picture "
    "has a row for each.",
)
@click.option(
    "--condition",
    "conditions",
    metavar="X[,Y...]",
    multiple=True,
    callback=lambda context, parameter, given: [_numbers(text) for text in given],
    help="Conditions to draw samples for, numbers with commas; repeat it for several. By default those of examples.",
)
@click.option("--interpolate", is_flag=True, help="Interpolate spherically between two latent vectors in each row.")
@click.option("--rows", type=click.IntRange(1), help="Rows of the grid, or number of interpolations (8).")
@click.option(
    "--columns", type=click.IntRange(1), help="Columns of the grid, or samples per interpolation, with both ends (8)."
)
@run_with_plugins
def sample(
    run: Path,
    count: int | None,
    output: Path,
    seed: int | None,
    truncation: float | None,
    checkpoint: Step,
    labels: tuple[str, ...],
    conditions: list[list[float]],
    interpolate: bool,
    rows: int | None,
    columns: int | None,
) -> None:
    """Draws samples from the generator of a run, finished or not.

    Uses one of its checkpoints, one device, and the averaged generator if the run keeps one. Sample i of a seed is the
    same however many are drawn, and the same as during training. A .png is a grid of images, or points beside real
    ones, or what the dataset shows of its samples; a .npz holds `samples`, `latents` and what else the generator takes:
    `labels`, `conditions`, `source`; a .txt has a line for each sample of a dataset that shows texts. A generator with
    a source is given examples of it, and images are drawn each after the one that it was made from.

    \b
    ganlab sample runs/quickstart/20260801-120000-s0-1f2e -o digits.png
    ganlab sample RUN -n 10000 --seed 1 --truncation 0.7 -o samples.npz
    ganlab sample RUN --interpolate --rows 6 --columns 12 -o ways.png
    ganlab sample RUN --label circle -o circles.png
    ganlab sample RUN -n 10000 -o images/
    ganlab sample RUN --condition 0.5,1.2 -n 1000 -o showers.npz
    ganlab sample RUN --interpolate --label 3 --label 8 -o from_3_to_8.png
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    from ganlab_export.labels import class_numbers
    from ganlab_export.pictures import are_points, check_picture, picture, texts, write_images

    drawing = output.suffix.lower() == ".png"
    _check_options(output, count, rows, columns, interpolate, drawing)
    drawn_from = Run(run)
    numbers = class_numbers(drawn_from, labels)
    shape = drawn_from.info.get("sample_shape")
    if drawing and shape and are_points(shape) and not interpolate and (rows or columns):
        raise click.UsageError("--rows and --columns arrange images and do not apply to points: leave them out.")
    drawn_from.recipe(only=GENERATOR_SETTINGS)  # reports a mistake in it before TensorFlow starts
    start_tensorflow()
    import ganlab_export

    if shape and (drawing or not output.suffix):
        check_picture(shape, drawn_from)
    asked: dict[str, Any] = {"labels": numbers, "conditions": conditions}
    if interpolate:
        rows, columns = rows or _ROWS, columns or _COLUMNS
        drawn = ganlab_export.interpolate(
            drawn_from, rows, columns, seed=seed, truncation=truncation, checkpoint=checkpoint, **asked
        )
    else:
        classes = len(drawn_from.info.get("label_frequencies") or ())
        if classes and drawing and shape and not are_points(shape) and not (count or rows):
            row_labels = numbers or list(range(classes))
            rows, columns = len(row_labels), columns or _OF_CLASS
            numbers = [label for label in row_labels for _ in range(columns)]
        count = count or (rows * columns if rows and columns else _POINTS if shape and are_points(shape) else _IMAGES)
        columns = columns or (-(-count // rows) if rows else None)
        drawn = ganlab_export.draw(
            drawn_from, count, seed=seed, truncation=truncation, checkpoint=checkpoint, **{**asked, "labels": numbers}
        )
    content = picture(drawn_from, drawn, columns=columns, ways=interpolate) if drawing else None
    if output.suffix.lower() == ".txt":
        content = texts(drawn_from, drawn).encode()
    if output.suffix:
        _write(output, drawn, content)
    else:
        write_images(output, drawn_from, drawn)
    say(f"Wrote {line(output)}: {len(drawn.samples)} samples of seed {drawn.seed} at step {drawn.step}.")


def _numbers(text: str) -> list[float]:
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"{text!r} must be numbers with commas between them, for example 0.5,1.2.") from None


def _check_options(
    output: Path, count: int | None, rows: int | None, columns: int | None, interpolate: bool, drawing: bool
) -> None:
    if output.suffix.lower() not in ("", *_ENDINGS):
        raise click.UsageError(
            f"-o {output} must end in .png, for a picture, .npz, for numbers, .txt, for texts, or in nothing: a folder."
        )
    if not output.suffix:
        check_free(output)
    elif output.is_dir():
        raise click.UsageError(f"-o {output} is a folder. Name a file, or a new folder without an ending.")
    if not output.parent.is_dir():
        raise click.UsageError(f"-o {output}: there is no folder {output.parent}. Make it first.")
    if interpolate and count:
        raise click.UsageError("--interpolate draws rows x columns samples: pass --rows and --columns instead of -n.")
    if interpolate and columns == 1:
        raise click.UsageError("--interpolate needs --columns 2 or more: an interpolation has two ends.")
    if not interpolate and not drawing and (rows or columns):
        raise click.UsageError("--rows and --columns arrange a picture; pass -n for the number of samples to write.")
    if count and rows and columns and count > rows * columns:
        raise click.UsageError(f"-n {count} samples do not fit into {rows} rows of {columns}. Leave out one of them.")


def _write(output: Path, drawn: Drawn, content: bytes | None) -> None:
    import numpy as np

    with new_file(output) as file:
        if content is not None:
            file.write(content)
        else:
            arrays: dict[str, Any] = (
                dict(drawn.given) if drawn.labels is None else {"labels": drawn.labels, **drawn.given}
            )
            np.savez(file, samples=drawn.samples, latents=drawn.latents, **arrays)
