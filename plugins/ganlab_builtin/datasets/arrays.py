"""Examples in a numpy file: your own data without code."""

from __future__ import annotations

import os
import sys
import warnings
import zipfile
from collections.abc import Collection, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import ganlab
from ganlab import fingerprints
from ganlab.bounds import Local
from ganlab.errors import nearest
from ganlab.files import line
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.checks import existing, refusal
from ganlab_builtin.datasets.fixed_files import NpyRows
from ganlab_builtin.datasets.pixels import from_bytes, gather

_CHUNK_BYTES = 2**24  # the part of a file that is checked at a time
_MOST_CLASSES = 100_000  # networks have weights for each class; a larger number is a label of another kind
_ROUNDING = 1e-3  # how far outside [-1, 1] an image may be by rounding, as half precision leaves it
_DARK = 16  # that no byte of an image is above, in sets of 0 and 1, or of 17 levels
_PLAIN = 10.0  # vectors of numbers up to here are taken as they are
_UNEQUAL = 1e4  # times the width of another column that one has
_COARSE = 1e-3  # the part of a range of values that float32 must tell apart


class Arrays(ganlab.Dataset):
    """The rows of an array in a `.npy` or `.npz` file.

    The array is `(n, d)` for vectors, `(n, height, width)` for grey images, which get a channel axis, or
    `(n, height, width, channels)`. Bytes (uint8) become [-1, 1]; floating-point values are taken as they are, and
    images of them must lie in [-1, 1], unless `low` and `high` are given. The rows of a large `.npy` file are read when
    they are needed, so that it may be larger than memory, unless they are in Fortran's order; the array of a `.npz`
    file is read whole. A `.npy` file that is written during training ends it.
    """

    _advice = "Set datasets.arrays.low and .high to the values that become -1 and 1."
    _conditions: np.ndarray | None = None

    def __init__(
        self,
        *,
        path: Annotated[str, Local()],
        key: str | None = None,
        low: float | None = None,
        high: float | None = None,
        labels: str | None = None,
        conditions: str | None = None,
    ) -> None:
        """Opens the file and looks at all of its values once, unless they are plain bytes.

        Args:
            path: The file; a relative path is from the working directory.
            key: The array of a `.npz` file; may be left out if there is only one beside labels and conditions.
            low: The value that becomes -1; requires `high`.
            high: The value that becomes 1. Integers other than uint8 need both.
            labels: The array of a `.npz` file that has each row's class, whole numbers from 0; None for no labels.
            conditions: The array of a `.npz` file that has each row's conditions, such as its energy, `(n,)` or
                `(n, ...)`, which networks get as they are; None for no conditions.

        Raises:
            ConfigError: The file cannot be read, or its array is empty, of the wrong rank, ragged, not of numbers,
                not finite or out of range; or the labels are not a class a row, or the conditions not finite numbers
                for each. The message names the file and the rule.
        """
        self._called = f"datasets.arrays.path = {path!r}"
        classes = None if labels is None else load_rows(path, "labels", labels)
        given = None if conditions is None else load_rows(path, "conditions", conditions)
        self._take(load_rows(path, "key", key, beside=(labels, conditions)), low, high)
        self._number(classes, f"datasets.arrays.labels = {labels!r}", f" in {path!r}")
        if given is not None:
            self._conditions = self._conditions_of_rows(given, f"datasets.arrays.conditions = {conditions!r}")
            self.condition_shape = self._conditions.shape[1:]

    def _take(self, rows: Any, low: float | None, high: float | None) -> None:
        if (low is None) != (high is None):
            missing = "low" if low is None else "high"
            raise refusal("arrays", missing, None, "must be given too: low and high together become -1 and 1.")
        if low is not None and high is not None and not -sys.float_info.max <= low < high <= sys.float_info.max:
            raise refusal("arrays", "low", low, f"must be finite and below datasets.arrays.high = {high!r}.")
        self._check_kind(rows)
        self._rows, self._low, self._high = rows, low, high
        self._bytes = rows.dtype == np.uint8 and low is None
        if rows.dtype.kind in "iu" and low is None and not self._bytes:
            raise self._refusal(
                f"holds {rows.dtype} values, whose range is unknown; only uint8 is taken to be 0 to 255. "
                + self._advice
            )
        if not self._bytes:  # plain bytes are always in range
            self._check_values()
        elif rows.ndim > 2 and 0 < (most := next(_chunks(rows))[1].max()) <= _DARK:
            called = f"{self._called} has bytes from 0 to {most}"
            warnings.warn(f"{called}, which are nearly black: 255 is white.", stacklevel=4)
        self.sample_shape = (*rows.shape[1:], 1) if rows.ndim == 3 else rows.shape[1:]
        self.size = len(rows)

    def _number(self, classes: np.ndarray | None, called: str, place: str = "") -> None:
        self._labels = None if classes is None else self._classes_of_rows(classes, called, place)
        self.classes = None if self._labels is None else int(self._labels.max()) + 1

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The rows with these numbers, `(n, *sample_shape)` float32; the seed is not used."""
        count = numbers.shape[0]
        shape = (count, *self._rows.shape[1:])
        if self._bytes:  # through Python, too: a quarter of the traffic
            values = from_bytes(gather(self._rows.__getitem__, numbers, shape, np.uint8))
        else:
            values = gather(lambda wanted: self._in_float32(self._rows[wanted]), numbers, shape, np.float32)
        return tf.reshape(values, (count, *self.sample_shape))

    def labels(self, numbers: tf.Tensor) -> tf.Tensor:
        """The classes of the rows with these numbers, `(n,)` int64."""
        return tf.gather(self._labels, numbers)

    def conditions(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The conditions of the rows with these numbers, `(n, *condition_shape)` float32; the seed is not used."""
        return tf.gather(self._conditions, numbers)

    def fingerprint(self) -> dict[str, Any]:
        """The array's shape and dtype, and hashes of its values, of the labels and of the conditions."""
        facts = {"shape": list(self._rows.shape), "dtype": self._rows.dtype.name, "classes": self.classes}
        facts["rows"] = fingerprints.of_array(self._rows)
        for name, values in (("labels", self._labels), ("conditions", self._conditions)):
            if values is not None:
                facts[name] = fingerprints.of_array(values)
        return facts

    def _in_float32(self, rows: np.ndarray) -> np.ndarray:
        """The rows in float32, brought to [-1, 1] before if there are bounds."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if self._low is None or self._high is None:
                return rows.astype(np.float32)
            half = (Fraction(self._high) - Fraction(self._low)) / 2
            return (_above(rows, self._low) / float(half) - 1.0).astype(np.float32)

    def _classes_of_rows(self, labels: np.ndarray, called: str, place: str) -> np.ndarray:
        anew = "Number the classes anew: np.unique(labels, return_inverse=True)[1]."
        whole = labels.dtype.kind in "iu"
        if not whole or labels.shape not in ((self.size,), (self.size, 1)) or labels.min() < 0:
            negative = whole and labels.size and labels.min() < 0
            below = f", with {labels.min()} in row {labels.argmin()}" if negative else ""
            raise ganlab.ConfigError(
                f"{called} has {labels.dtype} values of shape {labels.shape}{place}{below}; it must have a "
                f"whole number from 0 for each of the {self.size} rows. {_label_remedy(labels, self.size) or anew}"
            )
        labels = labels.reshape(-1)
        classes = int(labels.max()) + 1
        if classes > _MOST_CLASSES:
            raise ganlab.ConfigError(
                f"{called} has the number {classes - 1} in row {int(labels.argmax())}{place and ' of' + place[3:]}; it "
                f"must be below {_MOST_CLASSES}. {anew}"
            )
        absent = np.setdiff1d(np.arange(classes), labels)
        if absent.size:
            which = ", ".join(map(str, absent[:5])) + (f" and {absent.size - 5} more" if absent.size > 5 else "")
            warnings.warn(
                f"{called} has numbers up to {classes - 1}, and so {classes} classes, of "
                f"which {absent.size} {'does' if absent.size == 1 else 'do'} not occur: {which}. "
                + (
                    "If they are numbered from 1, save labels - 1."
                    if absent.tolist() == [0]
                    else f"If that is not meant: {anew}"
                ),
                stacklevel=4,
            )
        return labels.astype(np.int64)

    def _conditions_of_rows(self, given: np.ndarray, called: str) -> np.ndarray:
        if given.dtype.kind not in "fiu" or given.shape[:1] != (self.size,) or 0 in given.shape:
            raise ganlab.ConfigError(
                f"{called} has {given.dtype} values of shape {given.shape}; it must have numbers for each of the "
                f"{self.size} rows: ({self.size},) or ({self.size}, k)."
            )
        with np.errstate(over="ignore"):
            values = given.astype(np.float32).reshape(len(given), *given.shape[1:] or (1,))
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values).reshape(len(values), -1).all(axis=1)))
            raise ganlab.ConfigError(f"{called} has a value in row {row} that is not finite in float32. Leave it out.")
        return values

    def _refusal(self, rule: str) -> ganlab.ConfigError:
        return ganlab.ConfigError(f"{self._called} {rule}")

    def _check_kind(self, rows: np.ndarray | NpyRows) -> None:
        if rows.dtype.kind not in "fiu":
            raise self._refusal(
                f"holds values of dtype {rows.dtype}; they must be real numbers. Convert it to uint8 or float32."
            )
        if rows.ndim not in (2, 3, 4):
            raise self._refusal(
                f"has an array of shape {rows.shape}; it must be (n, d), (n, height, width) or (n, height, width, "
                "channels). Reshape it."
            )
        if 0 in rows.shape:
            raise self._refusal(f"has an array of shape {rows.shape}, which is empty; there must be an example.")
        if rows.ndim == 4 and rows.shape[1] <= 4 < rows.shape[3]:
            raise self._refusal(
                f"has an array of shape {rows.shape}, which looks like (n, channels, height, width); channels must "
                "come last. Take array.transpose(0, 2, 3, 1)."
            )

    def _check_values(self) -> None:
        rows, vectors = self._rows, self._rows.ndim == 2
        least, most = np.array(np.inf), np.array(-np.inf)
        for start, chunk in _chunks(rows):
            # One pass: a NaN makes both NaN, an infinity or what float32 cannot hold shows in one of them.
            extremes = [chunk.min(axis=0 if vectors else None), chunk.max(axis=0 if vectors else None)]
            if not np.isfinite(self._in_float32(np.stack(extremes))).all():
                finite = np.isfinite(self._in_float32(chunk)).reshape(len(chunk), -1).all(axis=1)
                at = start + int(np.argmin(finite))
                raise self._refusal(
                    f"has a value in row {at} that is not finite in float32. Fix or leave out such rows."
                )
            least = extremes[0] if start == 0 else np.minimum(least, extremes[0])
            most = extremes[1] if start == 0 else np.maximum(most, extremes[1])
        if vectors:
            self._check_precision(least, most)
            self._check_scales(most.astype(np.float64) - least)
            return
        bottom, top = (-1.0, 1.0) if self._low is None or self._high is None else (self._low, self._high)
        margin = Fraction(_ROUNDING) * (Fraction(top) - Fraction(bottom))
        if _exact(least) < bottom - margin or _exact(most) > top + margin:
            raise self._refusal(
                f"has images with values from {least:g} to {most:g}; they must lie in [{bottom:g}, {top:g}]. "
                + self._advice
            )
        if self._low is None and least >= 0.0 and most > 0.5:
            warnings.warn(
                f"{self._called} has images with values from {least:g} to {most:g}, the upper "
                "half of [-1, 1], in which they are taken. If 0 is black, set datasets.arrays.low = 0 and .high = 1.",
                stacklevel=4,
            )

    def _check_precision(self, least: np.ndarray, most: np.ndarray) -> None:
        """Warns of vectors that lose their differences in float32, for example times in seconds since 1970."""
        if self._low is not None or self._rows.dtype.itemsize <= 4:
            return
        steps = np.spacing(np.maximum(np.abs(least), np.abs(most)).astype(np.float32))
        coarse = (most > least) & (steps > _COARSE * (most - least))
        if coarse.any():
            column = int(coarse.argmax())
            warnings.warn(
                f"{self._called} has values from {least[column]:.17g} to {most[column]:.17g} in "
                f"column {column}. Training computes in float32, which there has steps of {steps[column]:g}. Subtract "
                "an offset before saving, or set datasets.arrays.low and .high.",
                stacklevel=5,
            )

    def _check_scales(self, widths: np.ndarray) -> None:
        """Warns of columns beside which others are as good as constant, as of a table's different units."""
        wide, narrow = int(widths.argmax()), int(np.where(widths > 0, widths, np.inf).argmin())
        if widths[wide] > _UNEQUAL * widths[narrow]:
            warnings.warn(
                f"{self._called} has columns of unequal scale: values {widths[wide]:.3g} apart in column {wide}, "
                f"{widths[narrow]:.3g} in column {narrow}, which distances do not show. If that is not meant, save "
                "(rows - rows.mean(axis=0)) / rows.std(axis=0).",
                stacklevel=5,
            )


def _label_remedy(labels: np.ndarray, size: int | None) -> str | None:
    """How to correct labels that do not give each row a class; None if renumbering the classes is enough."""
    if labels.shape[:1] != (size,):
        return "Its length is not that of the rows: take the labels of these rows."
    if labels.size != size:
        return "It has several numbers a row: of labels that are one-hot, take np.argmax(labels, axis=1)."
    if labels.dtype.kind != "f" or (labels % 1 == 0).all():
        return None
    return "Numbers that are not whole are no classes; they may be conditions, which datasets.arrays.conditions takes."


def bounds(rows: Any) -> dict[str, float]:
    """The values that are likely to mean -1 and 1 in an array, as `low` and `high`; none where they are not needed."""
    starts = range(0, 0 if rows.dtype == np.uint8 else len(rows), max(1, _CHUNK_BYTES * len(rows) // rows.nbytes))
    chunks = (rows[at : at + starts.step] for at in starts)  # none of bytes, which are 0 to 255
    extremes = [(float(chunk.min()), float(chunk.max())) for chunk in chunks]
    least, most = np.min(extremes, initial=np.inf), np.max(extremes, initial=-np.inf)
    if not least < most or not np.isfinite([least, most]).all():
        return {}
    as_they_are = max(-least, most) <= _PLAIN if rows.ndim == 2 else -1 <= least < -_ROUNDING and most <= 1
    if rows.dtype.kind == "f" and as_they_are:
        return {}
    for high, half in ((1.0, 0.0), (255.0, 127.5)):  # less than half of 255 has another white
        if rows.ndim > 2 and -_ROUNDING * high <= least and half < most <= (1 + _ROUNDING) * high:
            return {"low": 0.0, "high": high}
    return {"low": float(least), "high": float(most)}


def _above(rows: np.ndarray, low: float) -> np.ndarray:
    """The rows minus a number, in float64: of whole numbers of 64 bits, too, which float64 cannot hold."""
    base: Any = float(low)
    if rows.dtype.kind in "iu":
        bounds = np.iinfo(rows.dtype)
        base = min(max(int(low), bounds.min), bounds.max)
        rows, start = rows.astype(rows.dtype.newbyteorder("=")), rows.dtype.type(base)
        # Differences of any two numbers fit into unsigned ones, whose arithmetic goes round.
        unsigned = np.dtype(f"u{rows.dtype.itemsize}")
        up = (rows.view(unsigned) - start.view(unsigned)).astype(np.float64)
        down = (start.view(unsigned) - rows.view(unsigned)).astype(np.float64)
        differences = np.where(rows >= start, up, -down)
    else:
        differences = rows.astype(np.float64) - base
    return differences - float(Fraction(low) - Fraction(base))


def _exact(value: np.ndarray) -> Fraction:
    return Fraction(int(value) if value.dtype.kind in "iu" else float(value))


def _chunks(rows: np.ndarray | NpyRows) -> Iterator[tuple[int, np.ndarray]]:
    step = max(1, _CHUNK_BYTES * len(rows) // rows.nbytes)
    for start in range(0, len(rows), step):
        yield start, rows[start : start + step]


def load_rows(path: str, parameter: str, name: str | None, beside: Collection[str | None] = ()) -> Any:
    """The array of this name; without one, the only one beside others."""
    file = Path(path).expanduser()
    if file.suffix not in (".npy", ".npz"):
        raise refusal("arrays", "path", path, "must be a .npy or a .npz file, as numpy.save and numpy.savez write.")
    existing("arrays", "path", path)
    if file.suffix == ".npy" and name is not None:
        raise refusal(
            "arrays", parameter, name, f"is for .npz files; {path!r} holds one array without a name. Leave it out."
        )
    try:
        if file.suffix == ".npy":
            return NpyRows("arrays", file, path)
        with np.load(file, allow_pickle=False) as archive:
            chosen = _chosen(path, parameter, name, archive.files, beside)
            _check_fits_memory(path, archive.zip, chosen)
            return archive[chosen]
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


def _check_fits_memory(path: str, archive: zipfile.ZipFile, name: str) -> None:
    """Checks the size of an array before it is unpacked: a small file can hold a terabyte of zeros."""
    size = max((info.file_size for info in archive.infolist() if info.filename.removesuffix(".npy") == name), default=0)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if size > memory:
        rule = f"has {size:,} bytes in {name!r}, more than this machine's memory of {memory:,}"
        raise refusal(
            "arrays", "path", path, f"{rule}. Save it with numpy.save as a .npy file, which is read in parts."
        )


def _chosen(path: str, parameter: str, name: str | None, names: list[str], beside: Collection[str | None]) -> str:
    if name in names:
        return name
    others = [other for other in names if other not in beside]
    if name is None and len(others) == 1:
        return others[0]
    hint, there = nearest(name, names) if name else " Set it to one of them.", line(", ".join(names)) or "none"
    raise refusal("arrays", parameter, name, f"must name an array of {path!r}, which has {there}.{hint}")
