"""Checks a run's folder before any work is spent on it: its place, its name, the fields of run.json."""

from __future__ import annotations

import errno
import math
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ganlab.errors import RunError
from ganlab.support.paths import is_name
from ganlab.support.terminal import line

# Characters of a name chosen by a user: at up to four bytes each, and with a suffix, it stays below 255 bytes.
_LONGEST_NAME = 60

# The parts of run.json that hold measured numbers.
MEASURED = ("metrics", "evaluation", "diagnostics")

# Bytes that must be free where a run will be stored: with less, not even its first files would fit.
_LEAST_ROOM = 1 << 16


def check_place(path: Path) -> None:
    """Checks that a new run's directory can be created, without creating it.

    Args:
        path: The directory, from `new_run_path`.

    Raises:
        RunError: Something else is in the way, the place is not writable, or TensorFlow cannot write there.
    """
    check_encoding(path)
    above = next(parent for parent in path.parents if os.path.lexists(parent))
    try:
        if not above.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"{above} is not a folder")
        with tempfile.TemporaryFile(dir=above) as file:
            file.write(bytes(_LEAST_ROOM))
            file.flush()
    except OSError as error:
        raise cannot_be_made(path, error) from error


def check_name(what: str, name: str) -> None:
    """Checks that a name chosen by a user can name a folder of runs. Hidden folders are not listed.

    Args:
        what: Whose name it is, for the message: `run name`.
        name: The name.

    Raises:
        RunError: The name is invalid.
    """
    if not is_name(name, longest=4 * _LONGEST_NAME) or len(name) > _LONGEST_NAME:
        dot = " and no leading dot" if name.startswith(".") else ""
        raise RunError(
            f"Invalid {what} {name!r:.60}: use at most {_LONGEST_NAME} printable characters and no '/'{dot}, "
            "for example 'baseline-2'."
        )


def check_fields(info: Mapping[str, Any], path: Path) -> None:
    """Checks the types of those fields of run.json that code acting on a run relies on.

    Args:
        info: The fields of run.json.
        path: The file, for the message.

    Raises:
        RunError: A field is invalid.
    """
    for name, (rule, holds) in _FIELDS.items():
        if name in info and not holds(info[name]):
            raise RunError(
                f"{line(path)}: {name} = {info[name]!r:.60} must be {rule}. Restore the file, or remove the run."
            )


def check_encoding(path: Path) -> None:
    """Checks that TensorFlow can write to a folder.

    Raises:
        RunError: The folder's path is not valid UTF-8.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise RunError(
            f"{str(path)!r} is not valid UTF-8, and TensorFlow can only write to paths that are. Rename it, or choose "
            "another --runs."
        ) from None


def cannot_be_made(path: Path, error: OSError) -> RunError:
    """Returns the error for a run's directory that cannot be created."""
    return RunError(
        f"The run's directory {line(path)} cannot be created: {error.strerror or error}. Choose another --runs."
    )


def _is_whole(value: Any, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63


def _is_time(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_whole(size, 1) for size in value)


def _are_frequencies(value: Any) -> bool:
    return value is None or (
        isinstance(value, list) and bool(value) and all(map(_is_time, value)) and 0 < sum(value) < math.inf
    )


# The rules for fields that are present.
_FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("step", "steps", "seed", "replicas"), ("a whole number of at least 0", _is_whole)),
    **dict.fromkeys(
        (*MEASURED, "settings", "provenance", "forked_from", "started_from"),
        ("an object of fields", lambda value: isinstance(value, dict)),
    ),
    **dict.fromkeys(("warnings", "health", "resumed"), ("a list", lambda value: isinstance(value, list))),
    "status": ("a word", lambda value: isinstance(value, str)),
    "wall_seconds": ("a number of seconds", _is_time),
    "label_frequencies": ("null, or a list of a number of at least 0 for each class", _are_frequencies),
    "sample_shape": ("a list of whole numbers of at least 1", _is_shape),
}
