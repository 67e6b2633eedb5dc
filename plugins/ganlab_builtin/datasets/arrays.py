"""Examples in a numpy file: your own data without code."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import ganlab
from ganlab import fingerprints
from ganlab.bounds import Local
from ganlab.errors import nearest
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.checks import refusal, whence
from ganlab_builtin.datasets.pixels import gather

_CHUNK_BYTES = 2**24  # the part of a file that is checked at a time
_MOST_CLASSES = 100_000  # networks have weights for each class; a larger number is a label of another kind
_ROUNDING = 1e-3  # how far outside [-1, 1] an image may be by rounding, as half precision leaves it


class Arrays(ganlab.Dataset):
    """The rows of an array in a `.npy` or `.npz` file.

    The array is `(n, d)` for vectors, `(n, height, width)` for grey images, which get a channel axis, or
    `(n, height, width, channels)`. Bytes (uint8) become [-1, 1]; floating-point values are taken as they are, and
    images of them must lie in [-1, 1], unless `low` and `high` are given. A `.npy` file is memory-mapped and may be
    larger than memory; the array of a `.npz` file is read whole.
    """

    def __init__(
        self,
        *,
        path: Annotated[str, Local()],
        key: str | None = None,
        low: float | None = None,
        high: float | None = None,
        labels: str | None = None,
    ) -> None:
        """Opens the file and looks at all of its values once, unless they are plain bytes.

        Args:
            path: The file; a relative path is from the working directory.
            key: The array of a `.npz` file; may be left out if there is only one beside the labels.
            low: The value that becomes -1; requires `high`.
            high: The value that becomes 1. Integers other than uint8 need both.
            labels: The array of a `.npz` file that has each row's class, whole numbers from 0; None for no labels.

        Raises:
            ConfigError: The file cannot be read, or its array is empty, of the wrong rank, ragged, not of numbers,
                not finite or out of range; or the labels are not a class a row. The message names the file and the
                rule.
        """
        if (low is None) != (high is None):
            missing = "low" if low is None else "high"
            raise refusal("arrays", missing, None, "must be given too: low and high together become -1 and 1.")
        if low is not None and high is not None and not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise refusal("arrays", "low", low, f"must be finite and below datasets.arrays.high = {high!r}.")
        self._path = path
        classes = None if labels is None else _load(path, "labels", labels)
        rows = _load(path, "key", key, beside=labels)
        self._check_kind(rows)
        # Plain bytes are always in range, and need no check.
        if rows.dtype == np.uint8 and low is None:
            low, high = 0.0, 255.0
        elif rows.dtype.kind in "iu" and low is None:
            raise self._refusal(
                f"holds {rows.dtype} values, whose range is unknown; only uint8 is taken to be 0 to 255. "
                "Set datasets.arrays.low and .high to the values that become -1 and 1."
            )
        else:
            self._check_values(rows, low, high)
        self._rows, self._low, self._high = rows, low, high
        self.sample_shape = (*rows.shape[1:], 1) if rows.ndim == 3 else rows.shape[1:]
        self.size = len(rows)
        self._labels = None if classes is None else self._classes_of_rows(classes, str(labels))
        self.classes = None if self._labels is None else int(self._labels.max()) + 1

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The rows with these numbers, `(n, *sample_shape)` float32; the seed is not used."""
        # Bytes stay bytes through Python: a quarter of the traffic.
        dtype = np.uint8 if self._rows.dtype == np.uint8 else np.float32
        count = numbers.shape[0]
        taken = gather(self._rows.__getitem__, numbers, (count, *self._rows.shape[1:]), dtype)
        values = tf.reshape(tf.cast(taken, tf.float32), (count, *self.sample_shape))
        if self._low is None or self._high is None:
            return values
        # Divided by the half range, so that both ends are exact.
        return (values - self._low) / ((self._high - self._low) / 2.0) - 1.0

    def labels(self, numbers: tf.Tensor) -> tf.Tensor:
        """The classes of the rows with these numbers, `(n,)` int64."""
        return tf.gather(self._labels, numbers)

    def fingerprint(self) -> dict[str, Any]:
        """The array's shape and dtype, and hashes of its values and of the labels."""
        found = {"shape": list(self._rows.shape), "dtype": self._rows.dtype.name, "classes": self.classes}
        found["rows"] = fingerprints.of_array(self._rows)
        if self._labels is not None:
            found["labels"] = fingerprints.of_array(self._labels)
        return found

    def _classes_of_rows(self, labels: np.ndarray, name: str) -> np.ndarray:
        if labels.dtype.kind not in "iu" or labels.shape not in ((self.size,), (self.size, 1)) or labels.min() < 0:
            raise refusal(
                "arrays",
                "labels",
                name,
                f"names an array of {labels.dtype} and shape {labels.shape} in {self._path!r}; it must hold a whole "
                f"number from 0 for each of the {self.size} rows.",
            )
        labels = labels.reshape(-1)
        classes = int(labels.max()) + 1
        anew = "Number the classes anew: np.unique(labels, return_inverse=True)[1]."
        if classes > _MOST_CLASSES:
            row = int(labels.argmax())
            rule = (
                f"has the number {classes - 1} in row {row} of {self._path!r}; it must be below {_MOST_CLASSES}. {anew}"
            )
            raise refusal("arrays", "labels", name, rule)
        if (absent := classes - len(np.unique(labels))) > 0:
            warnings.warn(
                f"datasets.arrays.labels = {name!r} has numbers up to {classes - 1}, and so {classes} classes, of "
                f"which {absent} {'does' if absent == 1 else 'do'} not occur. If that is not meant: {anew}",
                stacklevel=3,
            )
        return labels.astype(np.int64)

    def _refusal(self, rule: str) -> ganlab.ConfigError:
        return refusal("arrays", "path", self._path, rule)

    def _check_kind(self, rows: np.ndarray) -> None:
        if rows.dtype.kind not in "fiu":
            raise self._refusal(
                f"holds values of dtype {rows.dtype}; they must be real numbers. Save the array as uint8 or float32."
            )
        if rows.ndim not in (2, 3, 4):
            raise self._refusal(
                f"has an array of shape {rows.shape}; it must be (n, d), (n, height, width) or (n, height, width, "
                "channels). Reshape it before saving."
            )
        if rows.size == 0:
            raise self._refusal(f"has an array of shape {rows.shape}, which is empty; there must be an example.")
        if rows.ndim == 4 and rows.shape[1] <= 4 < rows.shape[3]:
            raise self._refusal(
                f"has an array of shape {rows.shape}, which looks like (n, channels, height, width); channels must "
                "come last. Save array.transpose(0, 2, 3, 1)."
            )

    def _check_values(self, rows: np.ndarray, low: float | None, high: float | None) -> None:
        least, most = np.inf, -np.inf
        largest = float(np.finfo(np.float32).max)
        for start, chunk in _chunks(rows):
            # One pass: a NaN makes both NaN, an infinity or what float32 cannot hold shows in one of them.
            chunk_least, chunk_most = float(chunk.min()), float(chunk.max())
            if not (chunk_least >= -largest and chunk_most <= largest):
                with np.errstate(over="ignore"):
                    finite = np.isfinite(chunk.astype(np.float32)).reshape(len(chunk), -1).all(axis=1)
                at = start + int(np.argmin(finite))
                raise self._refusal(
                    f"has a value in row {at} that is not finite in float32. Fix or leave out such rows."
                )
            least, most = min(least, chunk_least), max(most, chunk_most)
        if rows.ndim == 2:
            return
        bottom, top = (-1.0, 1.0) if low is None or high is None else (low, high)
        margin = _ROUNDING * (top - bottom)
        if least < bottom - margin or most > top + margin:
            raise self._refusal(
                f"has images with values from {least:g} to {most:g}; they must lie in [{bottom:g}, {top:g}]. Set "
                "datasets.arrays.low and .high to the values that become -1 and 1."
            )
        if low is None and least >= 0.0 and most > 0.5:
            warnings.warn(
                f"datasets.arrays.path = {self._path!r} has images with values from {least:g} to {most:g}, the upper "
                "half of [-1, 1], in which they are taken. If 0 is black, set datasets.arrays.low = 0 and .high = 1.",
                stacklevel=3,
            )


def _chunks(rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    step = max(1, _CHUNK_BYTES // max(1, rows[0].nbytes))
    for start in range(0, len(rows), step):
        yield start, rows[start : start + step]


def _load(path: str, parameter: str, name: str | None, beside: str | None = None) -> np.ndarray:
    """The array of this name; without one, the only one beside another."""
    file = Path(path).expanduser()
    if file.suffix not in (".npy", ".npz"):
        raise refusal("arrays", "path", path, "must be a .npy or a .npz file, as numpy.save and numpy.savez write.")
    if not file.is_file():
        raise refusal("arrays", "path", path, f"is not there: no file {str(file.absolute())!r}.{whence(path)}")
    if file.suffix == ".npy" and name is not None:
        raise refusal(
            "arrays", parameter, name, f"is for .npz files; {path!r} holds one array without a name. Leave it out."
        )
    try:
        if file.suffix == ".npy":
            return np.load(file, mmap_mode="r", allow_pickle=False)
        with np.load(file, allow_pickle=False) as archive:
            return archive[_chosen(path, parameter, name, archive.files, beside)]
    except ganlab.GanlabError:
        raise
    except Exception as error:  # a torn file leads to errors of zipfile, zlib, tokenize, or of memory, among others
        if "object" in str(error).lower():
            raise refusal(
                "arrays",
                "path",
                path,
                "holds Python objects, as numpy saves rows of unequal shape; it must be one array of numbers. "
                "Bring the rows to one shape before saving.",
            ) from None
        raise refusal("arrays", "path", path, f"cannot be read as a numpy file: {error}. Save it anew.") from error


def _chosen(path: str, parameter: str, name: str | None, names: list[str], beside: str | None) -> str:
    if name in names:
        return name
    others = [other for other in names if other != beside]
    if name is None and len(others) == 1:
        return others[0]
    hint = nearest(name, names) if name else " Set it to one of them."
    raise refusal(
        "arrays", parameter, name, f"must name an array of {path!r}, which has {', '.join(names) or 'none'}.{hint}"
    )
