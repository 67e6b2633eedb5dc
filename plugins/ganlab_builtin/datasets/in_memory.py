"""Examples of Python: arrays, sets of tf.data and of PyTorch, held in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import ganlab
from ganlab import fingerprints
from ganlab.commands import plugin_code
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.arrays import Arrays, bounds

# Modes of Pillow's pictures whose numbers are brightness or red, green and blue. Others are converted, and transparency
# is dropped, as `datasets.image_folder` does.
_NUMBERS = ("L", "RGB", "I", "F", "I;16", "I;16B", "I;16L", "I;16N")


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
    if _is_pair(data):
        return InMemory(_stacked(data[0], whole=hasattr(data[0], "__array__")), _array(data[1]))
    if hasattr(data, "__array__"):
        return InMemory(_stacked(data, whole=True))
    if hasattr(data, "element_spec"):
        _check_parts(data, data.element_spec)
        if not (data.cardinality() < -1 or data.cardinality() >= 0):
            raise ganlab.ConfigError("experiment.dataset is a tf.data.Dataset without an end. End it: .take(n).")
        with plugin_code("experiment.dataset", "as_numpy_iterator"):
            items: list[Any] = list(data.as_numpy_iterator())
    elif hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, (str, bytes, Mapping)):
        with plugin_code("experiment.dataset", "__getitem__"):
            items = [data[number] for number in range(len(data))]
        _check_parts(data, items[0] if items else None)
    elif hasattr(data, "__iter__") and not isinstance(data, (str, bytes, Mapping)):
        raise ganlab.ConfigError(
            f"experiment.dataset is of type {type(data).__name__}, whose items have no numbers. Give a list of them, "
            "list(...), or the .dataset of a DataLoader."
        )
    else:
        return None
    if not items:
        raise ganlab.ConfigError("experiment.dataset has no examples. Give at least one.")
    whole = hasattr(data, "element_spec") and _are_batches(data, items)
    columns = zip(*items, strict=False) if isinstance(items[0], tuple) else [items]
    return InMemory(*(_stacked(_joined(column) if whole else column, whole=whole) for column in columns))


def _is_pair(data: Any) -> bool:
    """Whether data are a tuple of examples and of as many classes, in arrays or lists."""
    if not isinstance(data, tuple) or len(data) != 2:
        return False
    if hasattr(data[0], "__array__"):
        return True
    try:
        classes = _array(data[1])
        return classes.ndim == 1 and classes.dtype.kind in "iu" and len(data[0]) == len(classes)
    except (TypeError, ValueError):
        return False


def _check_parts(data: Any, item: Any) -> None:
    """Refuses what is neither an example nor a tuple of it and perhaps its class; takes the specs of both, too."""
    pair = "(row['image'], row['label'])"
    remedy = f"In tf.data: .map(lambda row: {pair})" if hasattr(data, "element_spec") else f"[{pair} for row in data]"
    parts = item if isinstance(item, tuple) else (item,)
    found = None if len(parts) in (1, 2) else f"are a tuple of {len(parts)}"
    for part in parts:
        if isinstance(part, Mapping):
            found = f"have a dict of {', '.join(map(repr, part)):.80}"
        elif isinstance(part, tf.data.DatasetSpec):
            found = "have a tf.data.Dataset, as windows are"
    if found:
        raise ganlab.ConfigError(
            f"experiment.dataset has items that {found}; each must be an example, or a tuple (example, class): "
            f"{remedy}."
        )


def _are_batches(data: Any, items: Sequence[Any]) -> bool:
    """Whether the elements of a `tf.data.Dataset`, which are given, are of several examples each."""
    item = items[0]
    rank = np.ndim(item[0] if isinstance(item, tuple) else item)
    if rank > 1 and len(items) == 1:
        return True
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


def _stacked(items: Any, *, whole: bool) -> np.ndarray:
    """Items as one array, `whole` if they are one already. Channels of PyTorch's images become the last."""
    try:
        array = _array(items) if whole else np.stack([_array(item) for item in items])
    except ValueError as error:
        raise ganlab.ConfigError(
            f"The examples of experiment.dataset do not fit together: {error}. Give all of them one shape; classes "
            "beside them are the second of a tuple of two arrays, (examples, classes)."
        ) from None
    if array.ndim != 4 or type(items if whole else items[0]).__module__ != "torch":
        return array
    if array.shape[3] <= 4 < array.shape[1]:
        raise ganlab.ConfigError(
            f"experiment.dataset has PyTorch's images of shape {array.shape[1:]}, which must have channels first: "
            "images.permute(0, 3, 1, 2)."
        )
    return np.moveaxis(array, 1, -1)


def _joined(column: Sequence[Any]) -> np.ndarray:
    return np.concatenate([np.asarray(batch) for batch in column])


def _array(item: Any) -> np.ndarray:
    """An object's numbers: of a tensor outside its device and its gradient's graph, of a picture its colours.

    Raises:
        ConfigError: Values are masked.
    """
    if np.ma.is_masked(item):
        raise ganlab.ConfigError(
            "experiment.dataset has masked values. Replace them, array.filled(0), or leave their rows out."
        )
    if hasattr(item, "detach"):
        item = item.detach().cpu()
        item = item.float() if item.is_floating_point() and item.element_size() < 4 else item  # numpy has no bfloat16
    elif hasattr(item, "getbands") and item.mode not in _NUMBERS:
        item = item.convert("L" if item.mode in ("1", "LA", "La") else "RGB")
    return np.asarray(item)
