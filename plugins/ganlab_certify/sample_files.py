"""Samples in files that any program wrote: `.npy`, `.npz`, and folders of images."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from ganlab.commands import Recipe, listed
from ganlab.files import local, open_regular
from ganlab_certify.blueprints import UnreadableError
from ganlab_certify.models import guarded

_MOST, _HEADER = 2**31, 10_000  # bytes of an array, and of its header
_LARGEST = float(np.finfo(np.float32).max)  # its square is a float64
_SAMPLES = "samples"  # as `ganlab sample` calls them, beside latents and labels
_WHOLE_RANGES = {"u1": (0.0, 255.0), "b1": (0.0, 1.0)}


@dataclass(frozen=True)
class SampleRows:
    """The rows of a file.

    Attributes:
        rows: `(n, ...)` real numbers, all finite; at least one row of at least one number.
        count: How many rows the file has: n, or more if it is a folder of which some were read.
        ends: The least and the largest value that a number can have; None if the file does not limit them.
    """

    rows: np.ndarray
    count: int
    ends: tuple[float, float] | None


def read_rows(path: Path, key: str | None = None) -> SampleRows:
    """The rows of an array in a `.npy` or `.npz` file, as numbers as they are.

    Args:
        path: The file. Nothing in it is run, and what it claims is checked before memory is taken.
        key: The array of a `.npz` file; None for the only one, or the one called `samples`.

    Raises:
        ConfigError: The file cannot be used; the message has the reason.
    """
    rows: SampleRows = guarded(path, lambda: _checked(_read(local(path), key)), "compared")
    return rows


def read_folder(folder: Path, side: int | None, most: int) -> SampleRows:
    """The images of a folder in [-1, 1], as `ganlab evaluate --folder` takes them; a random part of a larger folder.

    Args:
        folder: The folder.
        side: The side of the squares that images become; None for that of the first one.
        most: How many images are read at most.

    Raises:
        ConfigError: The folder has no image, or a broken one.
    """
    from ganlab.engine import examples_of, make

    images = make(Recipe("datasets", "image_folder", {"path": str(folder), "size": side}))
    count = int(images.size or 0)
    numbers = np.random.default_rng(0).permutation(count)[:most]
    return SampleRows(examples_of(images, np.sort(numbers), 0), count, (-1.0, 1.0))


def _read(path: Path, key: str | None) -> np.ndarray:
    if path.suffix not in (".npy", ".npz"):
        raise UnreadableError("its ending is not .npy or .npz, and it is not a folder")
    with open_regular(path) as file:
        if path.suffix == ".npy":
            return _array(file)
        with zipfile.ZipFile(file) as archive, archive.open(_member(archive, key)) as member:
            return _array(member)


def _member(archive: zipfile.ZipFile, key: str | None) -> str:
    names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
    name = key or (names[0] if len(names) == 1 else _SAMPLES)
    if name not in names:
        raise UnreadableError(
            f"it has no array {name!r} but {listed([repr(each) for each in names], 6) or 'none'}; name one with --key"
        )
    return f"{name}.npy"


def _array(file: IO[bytes]) -> np.ndarray:
    start = file.read(8)
    width = {b"\1": 2, b"\2": 4}.get(start[6:7])
    if width is None or not start.startswith(b"\x93NUMPY"):
        raise UnreadableError("it does not hold an array of numbers as numpy.save and numpy.savez write one")
    size = file.read(width)
    length = int.from_bytes(size, "little")
    if length > _HEADER:
        raise UnreadableError(f"its header claims {length:,} bytes")
    read: Callable[..., tuple[tuple[int, ...], bool, np.dtype]] = (
        np.lib.format.read_array_header_1_0 if width == 2 else np.lib.format.read_array_header_2_0
    )
    shape, fortran, dtype = read(io.BytesIO(size + file.read(length)))
    if dtype.kind not in "fiub":
        raise UnreadableError(f"its values are of the dtype {dtype}, not real numbers; save float32 or uint8")
    if not shape or min(shape) < 1:
        raise UnreadableError(f"its array has the shape {shape}, without a row or without a number")
    count = math.prod(shape) * dtype.itemsize
    if count > _MOST:
        raise UnreadableError(f"its array of shape {shape} takes {count:,} bytes, more than {_MOST:,}; take fewer rows")
    data = file.read(count)
    if len(data) < count:
        raise UnreadableError(f"its array of shape {shape} needs {count:,} bytes and has {len(data):,}")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


def _checked(rows: np.ndarray) -> SampleRows:
    with np.errstate(all="ignore"):
        ends = float(rows.min()), float(rows.max())
    if not (ends[0] >= -_LARGEST and ends[1] <= _LARGEST):
        with np.errstate(all="ignore"):
            row = int(np.argmin(np.isfinite(rows.astype(np.float32)).reshape(len(rows), -1).all(axis=1)))
        raise UnreadableError(
            f"row {row} has a value that is not finite in float32; correct such rows, or leave them out"
        )
    return SampleRows(rows, len(rows), _WHOLE_RANGES.get(rows.dtype.str[1:]))
