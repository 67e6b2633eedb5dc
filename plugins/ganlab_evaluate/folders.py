"""Evaluates the images of a folder in place of a generator's samples."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from ganlab import Dataset, IncompatibleError
from ganlab.commands import Override, Recipe, arguments, plugins, selector_of
from ganlab.engine import diagnosed, load, make, measured, recipe_of, unique_names
from ganlab.files import line
from ganlab_evaluate.counting import Counting
from ganlab_evaluate.published import Asked

# The dataset that reads a folder of images.
_FOLDERS = "image_folder"
_NEEDS = ("dataset", "evaluators")


@dataclass(frozen=True)
class FolderEvaluation:
    """The result of an evaluation.

    Attributes:
        figures: By `<evaluator>/<figure>`.
        complaints: The problems that evaluators report, by name.
        images: How many images the folder has.
        shape: The shape that both folders' images were brought to.
    """

    figures: dict[str, float]
    complaints: dict[str, str]
    images: int
    shape: tuple[int, ...]


def evaluate_folder(
    folder: Path,
    against: str,
    params: Sequence[str],
    size: int | None = None,
    *,
    published: Asked | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> FolderEvaluation:
    """Measures the images of a folder against those of a dataset, by evaluators.

    Args:
        folder: The images.
        against: A folder of real images, or a dataset as in an experiment file: `@datasets.keras()`.
        params: The evaluators and other overrides, as `--param` takes them.
        size: The side that images of folders are brought to; None for that of the first file in `folder`.
        published: Published scores to measure, which `params` may override.
        report: Takes lines on the progress.

    Raises:
        ConfigError: A folder or a parameter is wrong.
        IncompatibleError: An evaluator asks for more samples than there are images.
    """
    images = _images(folder, size)
    side = images.sample_shape[0]
    reference = [Override(f"experiment.dataset={against}", f"--against {against!r}")]
    real = str(folder) if published is not None and published.reference is not None else against
    if not against.startswith("@"):
        selector = f"against/datasets.{_FOLDERS}"
        reference = [
            Override(f"experiment.dataset=@{selector}()", f"--against {against!r}"),
            Override(f"{selector}.path={real}", f"--against {against!r}"),
            Override(f"{selector}.size={side}", f"--size {side}"),
        ]
    scores = [] if published is None else published.overrides(int(images.size or 0))
    parts = load([], [*reference, *scores, *params], needs=_NEEDS).arguments
    dataset, evaluators = make(parts["dataset"]), make(parts["evaluators"])
    names = unique_names(evaluators)
    counting = Counting("images of the folder", _most(evaluators, "samples", images.size), report)
    _count(dataset, Counting("real images", _most(evaluators, "real_examples", dataset.size), report))
    figures: dict[str, float] = {}
    for name, evaluator in zip(names, evaluators, strict=True):
        figures |= measured([name], [evaluator], _drawing(folder, images, counting, evaluator), dataset, None)
        if published is not None and published.statistics is not None:
            evaluator.write_statistics()
    said = diagnosed(names, evaluators, figures)
    return FolderEvaluation(
        figures, {name: text for name, text in said.items() if text}, int(images.size or 0), tuple(images.sample_shape)
    )


def _images(folder: Path, side: int | None) -> Dataset:
    given = [f"path={folder}", f"size={side}"]
    images: Dataset = make(Recipe("datasets", _FOLDERS, arguments("datasets", _FOLDERS, given, "--folder")))
    return images


def _most(evaluators: Sequence[Any], name: str, size: int | None) -> int | None:
    """How many images evaluators ask for, as far as they say; for the time left alone."""
    wanted = [value for one in evaluators if isinstance(value := getattr(one, name, None), int)]
    return size if len(wanted) < len(evaluators) else min(max(wanted), size or max(wanted))


def _count(dataset: Dataset, counting: Counting) -> None:
    if not hasattr(dataset, "__dict__"):
        return
    read = dataset.examples

    @functools.wraps(read)  # its parameters are looked at
    def examples(numbers: Any, *arguments: Any, **named: Any) -> Any:
        if tf.executing_eagerly():  # a traced call is not one reading
            counting.add(len(numbers))
        return read(numbers, *arguments, **named)

    vars(dataset)["examples"] = examples


def _drawing(folder: Path, images: Dataset, counting: Counting, evaluator: Any) -> Callable[..., np.ndarray]:
    """The images as the samples of this evaluator, in the order of their names if it asks for all, else at random."""
    order = np.arange(int(images.size or 0))
    if getattr(evaluator, "samples", None) != len(order):  # names may begin with classes
        # Not the draw of an evaluator's own seed: of a folder against itself that would take the real images.
        order = np.random.default_rng([0, 1]).permutation(order)

    def sample(n: int, seed: int, labels: Any = None, *, start: int = 0) -> np.ndarray:
        del seed, labels
        if start + n > (images.size or 0):
            raise IncompatibleError(
                f"{selector_of(evaluator)} asks for {start + n} samples, and {line(folder)} has {images.size} images. "
                f"{_with_fewer(evaluator, int(images.size or 0))}"
            )
        counting.add(n)
        piece = 500
        numbers = [order[i : min(i + piece, start + n)] for i in range(start, start + n, piece)]
        return np.concatenate([np.asarray(images.examples(tf.constant(part, tf.int64), 0)) for part in numbers])

    return sample


def _with_fewer(evaluator: Any, images: int) -> str:
    """The advice for an evaluator that asks for more samples than there are images."""
    recipe = recipe_of(evaluator)
    if recipe is None or "samples" not in plugins.component(recipe.kind, recipe.name).signature.parameters:
        return "Let it draw fewer, or give more images."
    return f"Set its number of samples lower: --param {recipe.selector}.samples={images}."
