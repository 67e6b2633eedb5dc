"""Looks at a user's own images or arrays, and writes the experiment that fits them."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import ganlab
from ganlab.commands import counted, listed
from ganlab.files import line, walk
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.arrays import Arrays, bounds, load_rows
from ganlab_builtin.datasets.image_folder import ImageFolder

# Every file of at most so many is decoded to find broken ones. Headers of so many are read, and pixels of so many.
_DECODED, _HEADERS, _COLOURED = 2000, 10_000, 64
_SIZES = (64, 32, 16, 8)  # pixels; with larger images a processor trains for days
_PARTS = {"train", "training", "test", "testing", "val", "valid", "validation", "dev", "eval"}
_UNREAD = {".webp", ".tif", ".tiff", ".avif", ".heic", ".jfif", ".jp2", ".svg"}
_FEW = 5000  # images, with fewer of which a critic soon learns them by heart
_OF_A_CLASS = 10  # images on average, with fewer of which they may be no classes
_NAMED = 10  # classes

# Parts of experiment files: the networks and the penalty of gin/glyphs.gin, and of gin/quickstart.gin.
_CONVOLUTIONAL = """\
experiment.architecture = @architectures.dcgan()
experiment.loss = @losses.non_saturating()
experiment.constraints = [@constraints.r1()]
experiment.strategy = @strategies.mirrored()
experiment.critic_optimizer = @optimizers.adam()
experiment.generator_optimizer = @optimizers.adam()
experiment.critic_steps = 1
experiment.batch_size = 64
experiment.steps = 15000
experiment.ema_decay = 0.999

# More channels learn more, and take longer: 64 on a GPU.
architectures.dcgan.channels = 32
constraints.r1.gamma = 1.0
constraints.r1.every = 4
optimizers.adam.learning_rate = 3e-4
optimizers.adam.schedule = 'cosine'
optimizers.adam.beta_1 = 0.0
optimizers.adam.beta_2 = 0.9
"""
_DENSE = """\
include 'base/wgan_gp.gin'

experiment.architecture = @architectures.mlp()
experiment.steps = 6000
experiment.ema_decay = 0.999

architectures.mlp.width = 256
architectures.mlp.latent_dim = 32
architectures.mlp.activation = 'leaky_relu'
constraints.gradient_penalty.weight = {weight}
optimizers.adam.learning_rate = 5e-4
optimizers.adam.schedule = 'cosine'
"""
_AUGMENTED = """\
# The critic would learn few images by heart (Zhao et al., 2020). With many, leave it out.
experiment.augmentations = [@augmentations.diff_augment()]
"""
_EVALUATED = """\
experiment.evaluators = [@evaluators.sliced_wasserstein()]
evaluators.sliced_wasserstein.samples = 1000
"""
_CLASSIFIED = """\
# How often samples show the asked class, by a classifier that trains first, for minutes on a processor. In place of the
# evaluators above:
# experiment.evaluators = [@evaluators.sliced_wasserstein(), @evaluators.label_accuracy()]
# evaluators.label_accuracy.features = @features.classifier()
"""


@dataclass(frozen=True)
class OwnData:
    """A dataset of a user's own.

    Attributes:
        dataset: The dataset.
        name: Its component's name.
        settings: The component's settings.
        facts: Sentences about the data.
        labelled: Whether its classes are used.
    """

    dataset: ganlab.Dataset
    name: str
    settings: dict[str, Any]
    facts: list[str] = field(default_factory=list)
    labelled: bool = False


def look_at_images(path: str, *, size: int | None, use_classes: bool) -> OwnData:
    """Looks at the pictures of a folder.

    Args:
        path: The folder.
        size: The side of the images to train on; None for one that fits.
        use_classes: Whether subfolders may be classes.

    Raises:
        ConfigError: The folder has no picture that can be read, one is too large, or its subfolders are parts of a set.
    """
    images, cautions = _opened(path)
    sizes, formats = _headers(path, images.names)
    parts = {name.lower() for name in images.class_names}
    if use_classes and parts and parts <= _PARTS:
        raise ganlab.ConfigError(
            f"The subfolders of {path!r} are {listed(images.class_names)}: parts of a set, and not classes. Name one "
            f"of them, for example --images {str(Path(path) / images.class_names[0])!r}, or take all of them as one "
            "set with --no-classes."
        )
    side = size or _fitting([min(pair) for pair in sizes])
    grey = _is_grey(images)
    images.sample_shape = (side, side, 1 if grey else 3)
    settings: dict[str, Any] = {"path": path, "size": side, "channels": 1 if grey else 3}
    if images.skipped:
        settings["skip_broken"] = True
    smallest, largest = min(sizes, key=np.prod), max(sizes, key=np.prod)
    span = _times(smallest) if smallest == largest else f"{_times(smallest)} to {_times(largest)}"
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(formats.items()))
    looked = "" if len(images.names) <= _HEADERS else f" (of {_HEADERS:,} files looked at)"
    facts = [f"{counted(len(images.names), 'image')}, {'grey' if grey else 'colour'}, {span} pixels; {kinds}{looked}."]
    cut = any(width != height for width, height in sizes)
    if cut or {min(pair) for pair in sizes} != {side}:
        cropped = "the central square of each, " if cut else ""
        facts.append(f"Training sees {cropped}resized to {side} x {side}; --size chooses another size.")
    facts += [*cautions, *_unread(path)]
    return _with_classes(images, "image_folder", settings, facts, use_classes, list(images.class_names))


def look_at_array(path: str, *, key: str | None, labels: str | None, use_classes: bool) -> OwnData:
    """Looks at an array of a numpy file.

    Args:
        path: The file.
        key: The array of a `.npz` file; None for the largest of two axes or more.
        labels: The array of the classes; None for the only one of whole numbers, one for each row, if there is one.
        use_classes: Whether there may be classes.

    Raises:
        ConfigError: datasets.arrays does not take it.
    """
    facts = []
    inside = _arrays_of(path)
    if key is None and (candidates := {name: shape for name, (shape, _) in inside.items() if len(shape) > 1}):
        key = max(candidates, key=lambda name: np.prod(candidates[name], dtype=float))
        if len(candidates) > 1:
            facts.append(f"Of {', '.join(sorted(candidates))} this is {key}; --key chooses another.")
    settings: dict[str, Any] = {"path": path, **({} if key is None else {"key": key}), **_bounds(path, key)}
    if labels is None and use_classes and key in inside:
        count = inside[key][0][:1]
        fitting = [n for n, (s, kind) in inside.items() if n != key and kind in "iu" and s in (count, (*count, 1))]
        labels = fitting[0] if len(fitting) == 1 else None
        if len(fitting) > 1:
            facts.append(f"{', '.join(fitting)} may be classes; --labels chooses one.")
        if labels is not None and not _takes(settings | {"labels": labels}):
            facts.append(f"{labels} are not classes: these are whole numbers from 0, as many as there are classes.")
            labels = None
        if others := _others(inside, key, fitting):
            facts.append(f"Left out: {others}. Classes are one whole number a row.")
    if labels is not None:
        settings["labels"] = labels
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        array = Arrays(**settings)
    facts += [line(warning.message) for warning in caught]
    shape = array.sample_shape
    noun = "image" if len(shape) == 3 else "vector"
    what = f"{counted(array.size or 0, noun)} of {_times(shape)}"
    if len(shape) == 3:
        what = f"{counted(array.size or 0, noun)} of {_times(shape[:2])} pixels, {_channels(shape[2])}"
    facts.insert(0, f"{what}.")
    if "low" in settings:
        facts.append(f"Values from {settings['low']:g} to {settings['high']:g} become -1 to 1.")
    return _with_classes(array, "arrays", settings, facts, use_classes, [])


def experiment_file(data: OwnData, heading: str) -> str:
    """The text of an experiment file for data.

    Args:
        data: The data.
        heading: Lines for its comment.
    """
    shape, size = data.dataset.sample_shape, data.dataset.size or 0
    images = len(shape) == 3
    convolutional = images and min(shape[:2]) >= 8
    parts = ["".join(f"# {text}\n" for text in heading.splitlines())]
    lines = [f"experiment.dataset = @datasets.{data.name}()\n"]
    lines += [f"datasets.{data.name}.{name} = {value!r}\n" for name, value in data.settings.items()]
    parts.append("".join(lines))
    parts.append(_CONVOLUTIONAL if convolutional else _DENSE.format(weight=10.0 if images else 0.1))
    if data.labelled:
        names = list(data.dataset.class_names) if isinstance(data.dataset, ImageFolder) else []
        called = ", ".join(f"{label} {line(name)}" for label, name in enumerate(names[:_NAMED]))
        called += ", and so on" if len(names) > _NAMED else ""
        comment = (
            f"# Classes{f': {called}' if called else ''}. Samples of one: ganlab sample RUN --label 0 -o samples.png\n"
        )
        parts.append(f"{comment}architectures.{'dcgan' if convolutional else 'mlp'}.labels = 'projection'\n")
    if convolutional and min(shape[:2]) >= 16 and size < _FEW:
        parts.append(_AUGMENTED)
    if size >= 4:  # which are halves of two
        parts.append(_EVALUATED + (_CLASSIFIED if data.labelled and convolutional else ""))
    return "\n".join(parts)


def _opened(path: str) -> tuple[ImageFolder, list[str]]:
    """The folder, without its broken files if it has any, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            images = ImageFolder(path=path)
            everything = len(images.names) <= _DECODED
        except ganlab.ConfigError:  # perhaps of broken files; if it is something else, this says so again
            everything = True
        if everything:
            caught.clear()
            images = ImageFolder(path=path, skip_broken=True)
    tops = {name.split(b"/")[0] for name in images.names}
    below = {name.split(b"/")[1] for name in images.names if name.count(b"/") > 1}
    if len(tops) == 1 and len(below) > 1:
        place = line(os.path.join(path, os.fsdecode(tops.pop())))
        return images, [f"All images lie in one subfolder, so there are no classes. Perhaps you mean --images {place}."]
    return images, [str(warning.message) for warning in caught if warning.category is UserWarning]


def _headers(path: str, names: Sequence[bytes]) -> tuple[list[tuple[int, int]], Counter[str]]:
    """The widths and heights of pictures, and how many have each format, from their headers alone."""
    from PIL import Image  # a dependency of Matplotlib

    sizes, formats = [], Counter[str]()
    for name in (names[i] for i in _spread(len(names), _HEADERS)):
        file = Path(path).expanduser() / name.decode(errors="surrogateescape")
        try:
            with warnings.catch_warnings(), ganlab.open_regular(file) as opened:
                warnings.simplefilter("ignore", Image.DecompressionBombWarning)
                with Image.open(opened, formats=("PNG", "JPEG", "BMP", "GIF")) as picture:
                    sizes.append(picture.size)
                    formats[str(picture.format)] += 1
        except Image.DecompressionBombError as error:
            raise ganlab.ConfigError(
                f"{line(file)} is too large to train on: {error}. Shrink it, or take it out of the folder."
            ) from None
        except (OSError, ValueError, SyntaxError):  # which TensorFlow reads nevertheless
            continue
    if not sizes:
        raise ganlab.ConfigError(f"--images {line(path)}: no picture has a header that can be read. Save them anew.")
    return sizes, formats


def _fitting(sides: list[int]) -> int:
    """The size to train on: that of the images if it is one and not large, else the next smaller of the usual ones."""
    if len(set(sides)) == 1 and sides[0] <= _SIZES[0]:
        return sides[0]
    median = float(np.median(sides))
    return next((size for size in _SIZES if size <= median), int(median))


def _is_grey(images: ImageFolder) -> bool:
    from ganlab.engine import examples_of

    pixels = examples_of(images, np.array(_spread(len(images.names), _COLOURED)), 0)
    return bool(np.ptp(pixels, axis=-1).max() < 2 / 127.5)  # JPEG rounds


def _unread(path: str) -> list[str]:
    others = Counter(Path(name).suffix.lower() for _, _, names in walk(Path(path).expanduser()) for name in names)
    unread = sorted(set(others) & _UNREAD)
    count = sum(others[suffix] for suffix in unread)
    sentence = f"{counted(count, 'file')} ({', '.join(unread)}) will not be read: convert them to PNG or JPEG."
    return [sentence] if unread else []


def _with_classes(
    dataset: ganlab.Dataset, name: str, settings: dict[str, Any], facts: list[str], use: bool, names: list[str]
) -> OwnData:
    if not (dataset.classes and use):
        return OwnData(dataset, name, settings, facts)
    labels = np.asarray(dataset.labels(tf.range(dataset.size, dtype=tf.int64)))
    counts = np.bincount(labels, minlength=dataset.classes)
    called = f": {listed([line(each) for each in names], 6)}" if names else ""
    each = f"{counts.min():,} each" if counts.min() == counts.max() else f"{counts.min():,} to {counts.max():,}"
    facts.append(f"{dataset.classes} classes of {each}{called}. --no-classes ignores them.")
    if counts.sum() < _OF_A_CLASS * dataset.classes:
        facts.append("These are few of each class: if they are not what samples should be asked for, use --no-classes.")
    return OwnData(dataset, name, settings, facts, labelled=True)


def _takes(settings: dict[str, Any]) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return bool(Arrays(**settings).classes)
        except ganlab.ConfigError:
            return False


def _arrays_of(path: str) -> dict[str, tuple[tuple[int, ...], str]]:
    """The shapes and kinds of dtypes of the arrays of a `.npz` file; none of another or an unreadable one."""
    arrays: dict[str, tuple[tuple[int, ...], str]] = {}
    if Path(path).suffix != ".npz":
        return arrays
    try:
        with ganlab.open_regular(Path(path).expanduser()) as file, np.load(file, allow_pickle=False) as archive:
            for name in archive.files:
                with archive.zip.open(f"{name}.npy") as member:
                    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
                    shape, _, dtype = read[np.lib.format.read_magic(member)](member)
                    arrays[name] = (shape, dtype.kind)
    except Exception:  # of any kind, as torn files have them: datasets.arrays says what is wrong
        return {}
    return arrays


def _others(inside: dict[str, tuple[tuple[int, ...], str]], key: str, fitting: Sequence[str]) -> str:
    """The arrays of a file that are neither the rows nor may be classes, each with the reason."""
    rows, whys = inside[key][0][0], []
    for name in sorted(inside.keys() - {key, *fitting}):
        shape, kind = inside[name]
        why = "several numbers a row" if kind in "iu" else "not stored as whole numbers"
        why += "; datasets.arrays.conditions takes it" * (kind == "f")
        whys.append(f"{name} ({why if shape[:1] == (rows,) else f'not {rows:,} rows'})")
    return ", ".join(whys)


def _bounds(path: str, key: str | None) -> dict[str, float]:
    """`low` and `high` for an array's values; none where they are not needed, or where the file cannot be read."""
    try:
        return bounds(load_rows(path, "key", key))
    except Exception:  # likewise
        return {}


def _spread(count: int, most: int) -> list[int]:
    """At most so many numbers below a count, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(int)).tolist()


def _times(sides: Sequence[int]) -> str:
    return " x ".join(map(str, sides))


def _channels(count: int) -> str:
    return {1: "grey", 3: "colour"}.get(count, f"{count} channels")
