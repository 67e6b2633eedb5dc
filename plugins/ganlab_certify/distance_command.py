"""`ganlab distance`: bounds how far apart the distributions of two samples are."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path

import click
import numpy as np

from ganlab.commands import LocalPath, printing_to_stderr, run_with_plugins, say_json, start_tensorflow
from ganlab.errors import ConfigError
from ganlab.files import line
from ganlab_certify import sample_distance
from ganlab_certify.output import interval_options, show_sample_distance
from ganlab_certify.sample_files import SampleRows, read_folder, read_rows


@click.command("distance")
@click.argument("first", metavar="A", type=LocalPath())
@click.argument("second", metavar="B", type=LocalPath())
@click.option("--key", metavar="NAME", help="The array of .npz files; by default the only one, or 'samples'.")
@click.option(
    "--size",
    metavar="PIXELS",
    type=click.IntRange(1, 4096),
    help="The side of the squares that images of folders become; by default that of the other file's images, or of the "
    "first one.",
)
@click.option("--whole", is_flag=True, help="A is not a sample, but the distribution itself: its rows, equally likely.")
@click.option("--paired", is_flag=True, help="Row i of both was drawn together; only pairs are independent.")
@interval_options(
    "The most rows of each that choose functions, and the most that bound.",
    "How probably the interval holds the distance.",
)
@click.option(
    "--box",
    type=float,
    nargs=2,
    metavar="LOW HIGH",
    help="The least and the largest value that any number can have. By default that of images, -1 and 1, or of bytes, "
    "and for other numbers a box wider than that of the rows.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
@run_with_plugins
def distance(
    first: Path,
    second: Path,
    key: str | None,
    size: int | None,
    whole: bool,
    paired: bool,
    samples: int,
    confidence: float,
    box: tuple[float, float] | None,
    as_json: bool,
) -> None:
    """Bounds the Wasserstein-1 distance of the distributions that two samples were drawn from.

    A and B are .npy or .npz files, whose rows are examples, or folders of images. Prints an interval that holds the
    distance between the distributions as `ganlab certify --distance` does, the exact and the sliced distance between
    the samples, and two tests of whether the distributions are the same: of the energy distance and of the maximum
    mean discrepancy. Needs no run, and writes nothing.

    \b
    ganlab distance real.npy generated.npz
    ganlab distance real.npz generated.npz --key features --box 0 4 --json
    ganlab distance IMAGES SAMPLES --size 32
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    with printing_to_stderr() if as_json else contextlib.nullcontext():
        a, b = _read((first, second), key, size, 2 * samples)
    shapes = [tuple(side for side in each.rows.shape[1:] if side > 1) for each in (a, b)]
    if shapes[0] != shapes[1]:
        raise ConfigError(
            f"Rows of {line(first)} have the shape {a.rows.shape[1:]}, and those of {line(second)} {b.rows.shape[1:]}; "
            "they must be of one shape. Reshape one of the two."
        )
    if box is None and a.ends != b.ends and np.uint8 in (a.rows.dtype, b.rows.dtype):
        raise ConfigError(
            f"{line(first)} holds {a.rows.dtype} and {line(second)} {b.rows.dtype} values: bytes and other numbers are "
            "of two scales. Bring the bytes to the other's, for example as x / 127.5 - 1, or give a range of both by "
            "--box."
        )
    ends = box or (a.ends if a.ends == b.ends else None)
    found = sample_distance(
        a.rows, b.rows, samples=samples, confidence=confidence, box=ends, whole=whole, paired=paired
    )
    if as_json:
        facts = dataclasses.asdict(found)
        say_json({"a": str(first), "b": str(second), "rows": [a.count, b.count], **facts.pop("interval"), **facts})
    else:
        show_sample_distance((first, second), found)


def _read(paths: tuple[Path, Path], key: str | None, size: int | None, most: int) -> list[SampleRows]:
    read = {path: read_rows(path, key) for path in paths if not path.is_dir()}
    if len(read) < 2:
        start_tensorflow()
        for path in paths:
            if path not in read:
                sides = {each.rows.shape[1] for each in read.values() if each.rows.ndim > 2}
                read[path] = read_folder(path, size or min(sides, default=None), most)
    return [read[path] for path in paths]
