"""Fingerprints of data: hashes of samples, by which a resumed run checks that its data are still the same.

A dataset's `fingerprint` returns plain values by name, which these functions compute. Hashes are lists, with one hash
for each block of rows in a fixed order that spreads over the whole set. Reading ends after some seconds, so a list may
be shorter another time; only the part that two lists have in common is compared.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ganlab.support.hashing import digest
from ganlab.support.paths import open_regular

_SECONDS = 2.0  # after which no further block is read
_ROWS = 4096  # at most
_BYTES = 1 << 26  # of all blocks together
_FIRST_ROWS, _MOST_ROWS = 4, 1024  # of one block
_BLOCK_BYTES = 1 << 24
_WHOLE_FILE = 1 << 20  # of larger files, parts are read
_PARTS = 16
_ENDLESS_ROWS = 256


def of_examples(dataset: Any) -> dict[str, Any]:
    """The fingerprint of any dataset, from some of its examples and their labels.

    Reads at most 4096 examples and 64 MiB, for about two seconds; the first 256 of an infinite set. A set whose
    examples cannot be read has a fingerprint without them: training reports what is wrong.

    Args:
        dataset: The `ganlab.Dataset`.

    Returns:
        `shape`, `size`, `classes`, `dtype`, and the hashes `rows` and, of what there is, `labels`, `conditions` and
        `sources`.
    """
    from ganlab.lazy import tensorflow as tf

    kinds: list[str] = []

    def rows(method: Callable[..., Any], numbers: np.ndarray) -> np.ndarray:
        with tf.device("CPU:0"):  # a GPU may round differently
            return np.asarray(method(tf.constant(numbers), 0))

    def examples(numbers: np.ndarray) -> np.ndarray:
        read = rows(dataset.examples, numbers)
        kinds.append(read.dtype.name)
        return read

    def labels(numbers: np.ndarray) -> np.ndarray:
        with tf.device("CPU:0"):
            return np.asarray(dataset.labels(tf.constant(numbers)), np.int64)

    facts: dict[str, Any] = {"shape": [int(n) for n in dataset.sample_shape], "size": dataset.size}
    facts["classes"] = dataset.classes
    facts["rows"] = _readable(examples, dataset.size)
    facts["dtype"] = kinds[0] if kinds else None
    if dataset.classes is not None:
        facts["labels"] = _readable(labels, dataset.size)
    for name, shape in (("conditions", dataset.condition_shape), ("sources", dataset.source_shape)):
        if shape is not None:
            facts[name] = _readable(functools.partial(rows, getattr(dataset, name)), dataset.size)
    return facts


def of_rows(
    read: Callable[[np.ndarray], np.ndarray | bytes], size: int | None, *, most: int | None = _ROWS
) -> list[str]:
    """Hashes of rows that are read by number.

    Args:
        read: Takes numbers, int64 `(n,)`, and returns the rows with these numbers.
        size: The number of rows; None for an infinite set.
        most: The largest number of rows to read; None for all, if time allows.

    Returns:
        A hash for each block of rows that was read, at least for the first.
    """
    return list(_hashes(read, size, most))


def _hashes(read: Callable[[np.ndarray], np.ndarray | bytes], size: int | None, most: int | None) -> Iterator[str]:
    if size is None:
        order = np.arange(_ENDLESS_ROWS, dtype=np.int64)
    else:
        order = spread(size, size if most is None else min(size, most))
    at, length, taken, begun = 0, _FIRST_ROWS, 0, time.monotonic()
    while at < len(order) and taken < _BYTES and (at == 0 or time.monotonic() - begun < _SECONDS):
        numbers = order[at : at + length]
        rows = read(numbers)
        yield digest(rows)
        at += len(numbers)
        given = rows.nbytes if isinstance(rows, np.ndarray) else len(rows)
        taken += given
        # Depends on sizes alone, so that the blocks are the same each time.
        longest = len(order) if most is None else _MOST_ROWS
        length = max(1, min(2 * length, longest, _BLOCK_BYTES * len(numbers) // max(1, given)))


def of_array(array: np.ndarray) -> list[str]:
    """Hashes of an array, or of rows that are read like one: of all up to 64 MiB, otherwise of some rows."""
    return [digest(array[:])] if array.nbytes <= _BYTES else of_rows(array.__getitem__, len(array))


def of_files(root: str | bytes, names: Sequence[str | bytes]) -> dict[str, Any]:
    """The fingerprint of files.

    It covers all names, as many sizes as two seconds allow, and the bytes of at most 4096 files: the whole of files up
    to 1 MiB, and sixteen parts of larger ones.

    Args:
        root: The folder that the names are relative to.
        names: The files, in the order in which they are used.

    Returns:
        `files`, the number of files, and the hashes `names`, `sizes` and `bytes`.
    """
    encoded = [os.fsencode(name) for name in names]
    paths = [os.path.join(os.fsencode(root), name) for name in encoded]
    return {
        "files": len(paths),
        "names": [digest(b"\0".join(encoded))],
        "sizes": of_rows(lambda numbers: np.array([_size(paths[n]) for n in numbers]), len(paths), most=None),
        "bytes": of_rows(lambda numbers: b"".join(_sample(paths[n]) for n in numbers), len(paths)),
    }


def spread(size: int, count: int) -> np.ndarray:
    """The first `count` numbers below `size`, int64, in a fixed order in which every prefix is spread out."""
    step = max(1, round(size * (math.sqrt(5) - 1) / 2))
    while math.gcd(step, size) != 1:
        step += 1
    if size < 2**31:
        return np.arange(count, dtype=np.int64) * step % size
    return np.array([number * step % size for number in range(count)], np.int64)  # a product may need more than int64


def _readable(read: Callable[[np.ndarray], np.ndarray], size: int | None) -> list[str]:
    hashes: list[str] = []
    with contextlib.suppress(Exception):  # the same call fails in training, which reports whose it is and where
        for digest in _hashes(read, size, _ROWS):
            hashes.append(digest)  # one by one: an error leaves those before it
    return hashes


def _size(path: bytes) -> int:
    try:
        return os.stat(path).st_size
    except OSError:  # gone since it was listed
        return -1


def _sample(path: bytes) -> bytes:
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= _WHOLE_FILE:
                return file.read(_WHOLE_FILE)
            length = _WHOLE_FILE // _PARTS
            parts = []
            for part in range(_PARTS):
                file.seek(part * (size - length) // (_PARTS - 1))
                parts.append(file.read(length))
            return b"".join(parts)
    except OSError:
        return b""
