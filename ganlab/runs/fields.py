"""What is checked of a run's folder before time goes into it: its place, its name, what run.json says."""

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

# Letters of a name that somebody chooses: of up to four bytes each, and with a suffix beside it, below 255 bytes.
_LONGEST_NAME = 60

# The parts of run.json that hold measured numbers.
MEASURED = ("metrics", "evaluation", "diagnostics")

# Bytes that must fit where a run is to go: below this, not even its first files would.
_LEAST_ROOM = 1 << 16


def check_place(path: Path) -> None:
    """Makes sure, without making anything, that a new run's directory can be made.

    Args:
        path: The directory, from `new_run_path`.

    Raises:
        RunError: Something else is in its way, nothing can be written there, or TensorFlow could not.
    """
    check_encoding(path)
    above = next(parent for parent in path.parents if os.path.lexists(parent))
    try:
        if not above.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"{above} is no folder")
        with tempfile.TemporaryFile(dir=above) as file:
            file.write(bytes(_LEAST_ROOM))
            file.flush()
    except OSError as error:
        raise cannot_be_made(path, error) from error


def check_name(what: str, name: str) -> None:
    """Makes sure that a name that somebody chose can name a folder of runs, which lists leave out if it is hidden.

    Args:
        what: Whose name it is, at the beginning of the message.
        name: The name.

    Raises:
        RunError: It cannot.
    """
    if not is_name(name, longest=4 * _LONGEST_NAME) or len(name) > _LONGEST_NAME:
        dot = ", and no dot in front" if name.startswith(".") else ""
        raise RunError(
            f"{what} {name!r:.60} cannot name a folder: at most {_LONGEST_NAME} plain letters, none of them '/'"
            f"{dot}. Use a word such as 'baseline-2'."
        )


def check_fields(info: Mapping[str, Any], path: Path) -> None:
    """Makes sure that the fields of run.json that whoever acts on a run counts on are of the right kind.

    Args:
        info: What it says.
        path: The file, for the message.

    Raises:
        RunError: One is not.
    """
    for name, (rule, holds) in _FIELDS.items():
        if name in info and not holds(info[name]):
            raise RunError(
                f"{line(path)}: {name} = {info[name]!r:.60} must be {rule}. Restore the file, or remove the run."
            )


def check_encoding(path: Path) -> None:
    """Makes sure that TensorFlow can write to a folder.

    Raises:
        RunError: Its path is no text.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise RunError(
            f"{str(path)!r} is no text in UTF-8, and TensorFlow writes to no other folders. Rename it, or choose "
            "another --runs."
        ) from None


def cannot_be_made(path: Path, error: OSError) -> RunError:
    """The error for a run's directory that cannot be made."""
    return RunError(
        f"The run's directory {line(path)} cannot be made: {error.strerror or error}. Choose another --runs."
    )


def _is_whole(value: Any, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63


def _is_time(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_whole(size, 1) for size in value)


# What whoever acts on a run counts on, of fields that are there.
_FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("step", "steps", "seed", "replicas"), ("a whole number of at least 0", _is_whole)),
    **dict.fromkeys(
        (*MEASURED, "settings", "provenance"), ("an object of fields", lambda value: isinstance(value, dict))
    ),
    **dict.fromkeys(("warnings", "health", "resumed"), ("a list", lambda value: isinstance(value, list))),
    "status": ("a word", lambda value: isinstance(value, str)),
    "wall_seconds": ("a number of seconds", _is_time),
    "sample_shape": ("a list of whole numbers of at least 1", _is_shape),
}
