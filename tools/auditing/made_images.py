"""Images that show what a dataset's preprocessing does to them, in place of those that would be downloaded."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import keras
import numpy as np
import tensorflow as tf

from ganlab.composition import make
from ganlab.functional import call
from ganlab.plugins.recipes import Recipe

# Height, width, channels and classes of the sets; an image of ImageNet or LSUN is one of their usual sizes.
SETS = {
    "mnist": (28, 28, 1, 10),
    "cifar10": (32, 32, 3, 10),
    "stl10": (96, 96, 3, 10),
    "celeb_a": (218, 178, 3, None),
    "celeb_a_hq/128": (128, 128, 3, None),
    "imagenet2012": (375, 500, 3, 1000),
    "lsun/bedroom": (256, 341, 3, None),
}
# The examples: black, white, black and white halves, and numbers of rows and of columns.
BLACK, WHITE, HALVES, ROWS, COLUMNS = range(5)
EPOCHS = 32


def dataset(recipe: Recipe) -> tuple[str, Any]:
    """The name of the innermost set, and a dataset over made images of its shape."""
    innermost = recipe
    while isinstance(inner := innermost.arguments.get("dataset"), Recipe):
        innermost = inner
    name = innermost.arguments["name"]
    height, width, channels, classes = SETS[name]
    images = _images(height, width, channels)
    with contextlib.ExitStack() as stack:
        if innermost.name == "keras":
            data = (images[..., 0] if channels == 1 else images, np.zeros((len(images), 1), np.int64))
            stack.enter_context(
                mock.patch.object(getattr(keras.datasets, name), "load_data", return_value=(data, data))
            )
        else:
            opened = "ganlab_builtin.datasets.tfds_images._open"
            stack.enter_context(mock.patch(opened, return_value=_Source(images, classes)))
            stack.enter_context(mock.patch("ganlab_builtin.datasets.tfds_images.require", mock.MagicMock()))
        return name, make(recipe)


def facts(recipe: Recipe) -> Iterator[tuple[str, Any]]:
    """What the preprocessing does, by name."""
    name, data = dataset(recipe)
    height, width = SETS[name][:2]
    yield "set", name
    yield "shape", list(data.sample_shape)
    seen = {example: _pixels(data, example) for example in (BLACK, WHITE, HALVES)}
    for example, fact in ((BLACK, "black"), (WHITE, "white")):
        yield fact, [round(float(bound(seen[example])), 4) for bound in (np.min, np.max)]
    middle = data.sample_shape[1] // 2
    mirrored = seen[HALVES][:, :, :middle].mean((1, 2, 3)) > seen[HALVES][:, :, middle:].mean((1, 2, 3))
    yield "flip", bool(mirrored.any())
    black, white = (seen[example].mean() for example in (BLACK, WHITE))
    rows, columns = ((_pixels(data, example) - black) * 255 / (white - black) for example in (ROWS, COLUMNS))
    yield "crop", [*_window(rows.mean((2, 3)), height), *_window(columns.mean((1, 3)), width)]


def _window(numbers: np.ndarray, length: int) -> list[int | str]:
    """The first row or column that is seen, and how many are, from the numbers that pixels have in each epoch."""
    places = np.arange(numbers.shape[1])
    inner = slice(len(places) // 4, -(len(places) // 4))  # away from the borders, where filters are cut off
    slopes, starts = np.polyfit(places[inner], numbers.T[inner] * _scale(length), 1)
    sizes = np.abs(slopes) * len(places)
    firsts = starts + slopes * (len(places) - 1) / 2 - (sizes - 1) / 2
    if max(np.ptp(sizes), np.ptp(firsts)) > 1:
        return ["random", "random"]
    return [round(firsts.mean()), round(sizes.mean())]


def _pixels(data: Any, example: int) -> np.ndarray:
    """One example in many epochs, as float64."""
    numbers = tf.fill([EPOCHS], tf.constant(example, tf.int64))
    return call(data.examples, numbers, 0, epochs=tf.range(EPOCHS, dtype=tf.int64)).numpy().astype(np.float64)


def _images(height: int, width: int, channels: int) -> np.ndarray:
    images = np.zeros((5, height, width, channels), np.uint8)
    images[WHITE] = 255
    images[HALVES, :, width // 2 :] = 255
    images[ROWS] = np.round(np.arange(height) / _scale(height))[:, None, None]
    images[COLUMNS] = np.round(np.arange(width) / _scale(width))[:, None]
    return images


def _scale(length: int) -> float:
    """How many rows or columns share a byte."""
    return max(1.0, (length - 1) / 255)


class _Source:
    """Examples by number, as TensorFlow Datasets has them."""

    def __init__(self, images: np.ndarray, classes: int | None) -> None:
        self._images = images
        feature = SimpleNamespace(num_classes=classes)
        self.dataset_info = SimpleNamespace(features={"label": feature})

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, number: int) -> dict[str, Any]:
        return {"image": self._images[number], "label": 0}

    def __getitems__(self, numbers: list[int]) -> list[dict[str, Any]]:
        return [self[number] for number in numbers]
