"""Checks of arguments, with the same messages in every dataset of this package."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import ganlab

_HEADER = 2**12  # bytes of an array in a file, beside its numbers


def refusal(dataset: str, parameter: str, value: Any, rule: str) -> ganlab.ConfigError:
    """The error for an argument: `datasets.<dataset>.<parameter> = <value> <rule>`."""
    return ganlab.ConfigError(f"datasets.{dataset}.{parameter} = {value!r} {rule}")


def existing(dataset: str, parameter: str, path: str, what: str = "file") -> Path:
    """The file or the folder at a path, or a refusal that says where a relative one was looked for."""
    place = Path(path).expanduser()
    if place.is_dir() if what == "folder" else place.is_file():
        return place
    rule = f"is not there: no {what} {str(place.absolute())!r}."
    if not place.is_absolute():
        rule += (
            f" A relative path is taken from the working directory, {os.getcwd()!r}, and not from the experiment file: "
            "start the command in the folder that it is meant from, or write the whole path."
        )
    raise refusal(dataset, parameter, path, rule)


def arrays_of_file(dataset: str, path: str, shapes: Mapping[str, tuple[int, ...]], asking: str) -> list[np.ndarray]:
    """Floating-point arrays of a `.npz` file, by their names and shapes; `asking` names what asks for these.

    Raises:
        ConfigError: The file cannot be read, or an array is missing, of another shape, or not finite.
    """
    file, found = existing(dataset, "path", path), []
    try:
        with zipfile.ZipFile(file) as archive:
            sizes = {entry.filename.removesuffix(".npy"): entry.file_size for entry in archive.infolist()}
        with np.load(file, allow_pickle=False) as arrays:
            for name, shape in shapes.items():
                rule = f"must have finite floating-point numbers of shape {shape} in {name!r}"
                if name not in sizes:
                    raise refusal(dataset, "path", path, f"has no array {name!r}, which {asking} ask for.")
                # Known before anything is unpacked.
                if sizes[name] > 8 * math.prod(shape) + _HEADER:
                    raise refusal(dataset, "path", path, f"{rule}; it has {sizes[name]:,} bytes there.")
                array = np.asarray(arrays[name])
                if array.shape != shape or array.dtype.kind != "f" or not np.isfinite(array).all():
                    raise refusal(dataset, "path", path, f"{rule}; they are {array.dtype} of shape {array.shape}.")
                found.append(array)
    except ganlab.GanlabError:
        raise
    except Exception as error:  # a torn file leads to errors of zipfile, zlib, tokenize, or of memory, among others
        raise refusal(dataset, "path", path, f"cannot be read as a .npz file: {error}.") from error
    return found
