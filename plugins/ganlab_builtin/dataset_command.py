"""`ganlab dataset make` writes pictures, resized, to TFRecord files; `ganlab dataset show` draws examples."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

import ganlab
from ganlab.commands import (
    BESIDE_GIN,
    LocalPath,
    experiment_options,
    plugin_options,
    read_experiment,
    say,
    start_tensorflow,
    use_plugins,
)
from ganlab.files import line, new_file
from ganlab.lazy import tensorflow as tf

if TYPE_CHECKING:
    import numpy as np

    from ganlab_builtin.datasets.image_folder import ImageFolder

FILTERS = ("bilinear", "bicubic", "lanczos3", "lanczos5", "mitchellcubic", "gaussian", "area", "nearest")
_AT_A_TIME, _PIXELS = 64, 2**24  # images, or fewer large ones
_SHOWN, _POINTS, _OF_A_CLASS, _CLASSES = 64, 1000, 10, 20


@click.group()
def dataset() -> None:
    """Prepares datasets and shows them."""


@dataset.command()
@click.argument("source", type=LocalPath())
@click.argument("folder", type=LocalPath())
@click.option("--size", metavar="PIXELS", type=click.IntRange(1, 4096), required=True, help="The side of the images.")
@click.option(
    "--filter",
    "method",
    type=click.Choice(FILTERS),
    default="bilinear",
    show_default=True,
    help="How images are resized, always antialiased; a method of tf.image.resize.",
)
@click.option("--grey", is_flag=True, help="Make grey images; by default three channels.")
@click.option(
    "--shard",
    metavar="EXAMPLES",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="Examples in a file.",
)
@click.option("--skip-broken", is_flag=True, help="Leave out files that cannot be decoded.")
def make(source: Path, folder: Path, size: int, method: str, grey: bool, shard: int, skip_broken: bool) -> None:
    """Crops and resizes the pictures of a folder once, into TFRecord files for datasets.tfrecords.

    SOURCE is a folder as datasets.image_folder takes it, whose subfolders may be classes. FOLDER, which must not exist,
    gets files of PNG images with their labels, and dataset.json, which says what they were made of. The central square
    of each picture is resized.

    \b
    ganlab dataset make celeba/img_align_celeba celeba64 --size 64 --filter lanczos3
    ganlab run --gin mine.gin --param 'experiment.dataset=@datasets.tfrecords()' \\
      --param "datasets.tfrecords.path='celeba64'"
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    if folder.exists():
        raise ganlab.ConfigError(f"{folder} exists. Name a folder that does not, or remove it.")
    from ganlab_builtin.datasets.image_folder import ImageFolder

    images = ImageFolder(path=str(source), size=size, channels=1 if grey else 3, skip_broken=skip_broken)
    images.filter = method
    about = {
        "source": str(source),
        "size": size,
        "channels": images.sample_shape[2],
        "filter": method,
        "examples": images.size,
        "skipped": images.skipped,
        "classes": images.class_names,
    }
    with ganlab.new_folder(folder) as unfinished:
        _write(images, unfinished, shard)
        (unfinished / "dataset.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    classes = f", {images.classes} classes" if images.classes else ""
    click.echo(f"{folder}: {images.size:,} images of {size} x {size}{classes}. Use datasets.tfrecords.")


@dataset.command()
@experiment_options
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=LocalPath(dir_okay=False),
    required=True,
    help="The picture to write, a PNG.",
)
@plugin_options(BESIDE_GIN)
def show(
    gin_files: tuple[str, ...],
    params: tuple[str, ...],
    output: Path,
    no_plugin: tuple[str, ...],
    plugin_file: Path | None,
) -> None:
    """Draws examples of an experiment's dataset as training will see them: cropped, resized, in [-1, 1].

    FILE is an experiment, as of `ganlab run`. With classes, the picture has a row for each of the first 20; otherwise
    it has 64 images from all over the data. Augmentations, which vary, are not applied.

    \b
    ganlab dataset show mine.gin -o mine.png
    ganlab dataset show quickstart -o digits.png
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    if not gin_files:
        raise click.UsageError("Missing experiment: name a FILE, for example 'ganlab dataset show quickstart'.")
    if output.suffix.lower() != ".png":
        raise click.UsageError(f"-o {line(output)} must end in .png.")
    use_plugins(no_plugin, plugin_file, gin_files[0])
    arguments = read_experiment(gin_files, params).arguments
    start_tensorflow()
    from ganlab.engine import make

    data, seed = make(arguments["dataset"]), int(arguments.get("seed", 0))
    png, sentence = _picture(data, seed)
    with new_file(output) as file:
        file.write(png)
    say(f"Wrote {line(output)}: {sentence}")


def _picture(data: ganlab.Dataset, seed: int) -> tuple[bytes, str]:
    """A picture of examples, and a sentence about it.

    Raises:
        IncompatibleError: Examples of this shape have no picture.
    """
    import numpy as np

    from ganlab.engine import examples_of, shown
    from ganlab.pictures import image_grid, page, scatter
    from ganlab_builtin.evaluators.by_class import labelled

    shape = tuple(data.sample_shape)
    points = shape == (2,)
    count = _POINTS if points else _SHOWN
    numbers = np.arange(count) if data.size is None else np.linspace(0, data.size - 1, count).astype(np.int64)
    numbers, columns, rows = np.unique(numbers), None, ""
    if data.classes and not points:
        every, labels = labelled(data, seed)
        columns = _OF_A_CLASS
        classes = np.unique(labels)[:_CLASSES]
        numbers = np.concatenate([np.resize(every[labels == label], columns) for label in classes])
        rows = f", a row for each of {len(classes)} classes"
    examples = examples_of(data, numbers, seed)
    span = f"with values from {examples.min():.3g} to {examples.max():.3g}"
    of = "" if data.size is None else f" of {data.size:,}"
    what = f"{len(np.unique(numbers)):,}{of} examples of shape {shape}, {span}{rows}."
    if (given := shown(data, examples)) is not None:
        return page(given, columns), what
    if points:
        return scatter(examples, examples[:0]), what
    if len(shape) != 3 or shape[-1] not in (1, 3):
        raise ganlab.IncompatibleError(
            f"Examples of shape {shape} have no picture: only images of 1 or 3 channels, points in the plane and what "
            "a dataset shows do."
        )
    return image_grid(examples, columns), what


def _write(images: ImageFolder, folder: Path, shard: int) -> None:
    import numpy as np

    from ganlab_builtin.datasets.tfrecords import INDEX

    total = int(images.size or 0)
    count = -(-total // shard)
    together = min(_AT_A_TIME, max(1, _PIXELS // images.sample_shape[0] ** 2))

    @tf.function
    def encoded(numbers: tf.Tensor) -> tf.Tensor:
        pixels = tf.cast(tf.round((images.examples(numbers, 0) + 1.0) * 127.5), tf.uint8)
        return tf.map_fn(tf.io.encode_png, pixels, fn_output_signature=tf.string, parallel_iterations=together)

    with click.progressbar(length=total, label="Images", file=sys.stderr) as bar:
        for place in range(count):
            file = folder / f"images-{place:05d}-of-{count:05d}.tfrecord"
            starts = [0]
            with tf.io.TFRecordWriter(str(file)) as writer:
                for first in range(place * shard, min(total, (place + 1) * shard), together):
                    numbers = np.arange(first, min(first + together, total, (place + 1) * shard))
                    # Of one length, so that it is traced once.
                    padded = np.pad(numbers, (0, together - len(numbers)), mode="edge")
                    pictures = encoded(tf.constant(padded)).numpy()[: len(numbers)]
                    for png, label in zip(pictures, _labels(images, numbers), strict=True):
                        record = _record(png, label)
                        writer.write(record)
                        starts.append(starts[-1] + 16 + len(record))
                    bar.update(len(numbers))
            np.save(folder / f"{file.name}{INDEX}", np.array(starts, np.int64))


def _labels(images: ImageFolder, numbers: np.ndarray) -> list[int | None]:
    return [None] * len(numbers) if images.classes is None else images.labels(tf.constant(numbers)).numpy().tolist()


def _record(png: bytes, label: int | None) -> bytes:
    from ganlab_builtin.datasets.tfrecords import IMAGE, LABEL

    features = {IMAGE: tf.train.Feature(bytes_list=tf.train.BytesList(value=[png]))}
    if label is not None:
        features[LABEL] = tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))
    return bytes(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString(deterministic=True))
