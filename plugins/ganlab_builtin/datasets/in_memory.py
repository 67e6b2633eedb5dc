"""Examples of Python: arrays, sets of tf.data and of PyTorch, held in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import ganlab
from ganlab import fingerprints
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.arrays import Arrays, bounds


class InMemory(Arrays):
    """The rows of an array, and perhaps the class of each, as `datasets.arrays` takes them.

    Values that are not in [-1, 1] are brought there: from 0 to 1 or 0 to 255 if images lie there, otherwise from the
    least to the most.
    """

    _advice = "Scale them to [-1, 1], or convert them to uint8."

    def __init__(self, examples: np.ndarray, row_classes: np.ndarray | None = None) -> None:
        """Looks at all values once.

        Raises:
            ConfigError: As of `datasets.arrays`.
        """
        self._called = "The array of experiment.dataset"
        fits = examples.dtype.kind in "fiu" and 0 not in examples.shape
        limits = bounds(examples) if fits else {}
        self._take(examples, limits.get("low"), limits.get("high"))
        self._number(row_classes, "The array of labels of experiment.dataset")
        # A text, so that runs on other data have other settings.
        parts = [examples] if row_classes is None else [examples, row_classes]
        hashes = " ".join(fingerprints.of_array(part)[0][:8] for part in parts)
        self._examples = f"{examples.dtype} {'x'.join(map(str, examples.shape))} {hashes}"


def dataset_of(data: Any) -> InMemory | None:
    """The dataset of an object of Python with examples, which are read once; None for an object that has none.

    An item of a `tf.data.Dataset`, or of what has a length and items, is an example, or a tuple of it and its class.

    Raises:
        ConfigError: The examples are endless, have unequal shapes, or cannot be trained on.
    """
    if isinstance(data, tuple) and len(data) == 2 and hasattr(data[0], "__array__"):
        return InMemory(_stacked([data[0]], whole=True), np.asarray(data[1]))
    if hasattr(data, "__array__"):
        return InMemory(_stacked([data], whole=True))
    if hasattr(data, "element_spec"):
        _check_parts(data.element_spec)
        if not (data.cardinality() < -1 or data.cardinality() >= 0):
            raise ganlab.ConfigError("experiment.dataset is a tf.data.Dataset without an end. End it: .take(n).")
        items: list[Any] = list(data.as_numpy_iterator())
    elif hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, (str, bytes, dict)):
        items = [data[number] for number in range(len(data))]
        _check_parts(items[0] if items else None)
    else:
        return None
    whole = bool(items) and hasattr(data, "element_spec") and _are_batches(data, items[0])
    columns = zip(*items, strict=False) if items and isinstance(items[0], tuple) else [items]
    return InMemory(*(_stacked(column, whole=whole) for column in columns))


def _check_parts(item: Any) -> None:
    """Refuses what is neither an example nor a tuple of it and perhaps its class; takes the specs of both, too."""
    parts = item if isinstance(item, tuple) else (item,)
    found = None if len(parts) in (1, 2) else f"are a tuple of {len(parts)}"
    for part in parts:
        if isinstance(part, Mapping):
            found = f"have a dict of {', '.join(map(repr, part)):.80}"
        elif isinstance(part, tf.data.DatasetSpec):
            found = "have a tf.data.Dataset, as windows are"
    if found:
        raise ganlab.ConfigError(
            f"experiment.dataset has items that {found}; each must be an example, or a tuple (example, class). "
            "In tf.data: .map(lambda row: (row['image'], row['label']))."
        )


def _are_batches(data: Any, item: Any) -> bool:
    """Whether the elements of a `tf.data.Dataset`, of which one is given, are of several examples each."""
    rank = np.ndim(item[0] if isinstance(item, tuple) else item)
    if rank == 4 or (isinstance(item, tuple) and len(item) > 1 and not np.ndim(item[1])):
        return rank == 4
    shape, source = _first_shape(data), data
    while sources := source._inputs():  # there is no public way to what a batch of a fixed size is a batch of
        name = type(source).__name__.lower()
        if any(word in name for word in ("unbatch", "flatmap", "interleave")):  # which make other elements
            break
        if "batch" in name and shape[:1] in (_first_shape(source)[:1], [None]):
            return True
        source = sources[-1]
    # Of three unknown sides, as decoded pictures have them, it is one image.
    return bool(shape[:1] == [None] and not (rank == 3 and shape[1:2] == [None]))


def _first_shape(data: Any) -> Any:
    return tf.nest.flatten(data.element_spec)[0].shape


def _stacked(items: Sequence[Any], *, whole: bool) -> np.ndarray:
    """Items as one array; `whole` if each is one of several examples. Channels of PyTorch's images become the last."""
    try:
        array = (np.concatenate if whole else np.stack)([np.asarray(item) for item in items])
    except ValueError as error:
        raise ganlab.ConfigError(f"The examples of experiment.dataset do not fit together: {error}.") from None
    return np.moveaxis(array, 1, -1) if array.ndim == 4 and type(items[0]).__module__ == "torch" else array
