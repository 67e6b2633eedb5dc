"""Checks a run's folder before any work is spent on it: its place and its name."""

from __future__ import annotations

import errno
import os
import shlex
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from ganlab.errors import RunError
from ganlab.support.paths import as_name, is_name
from ganlab.support.terminal import line

# Characters of a name chosen by a user: at up to four bytes each, and with a suffix, it stays below 255 bytes.
_LONGEST_NAME = 60

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


def new_path(runs: Path, name: str | None, what: str, stem: str) -> Path:
    """The path of a new folder for several runs, after checking that it can be created.

    Args:
        runs: The folder that it will be in.
        name: Its name as chosen by a user; None for `stem` and the time.
        what: What it is, for messages: `sweep`.
        stem: The beginning of the name otherwise.

    Raises:
        RunError: Something exists there, or the name cannot name a folder.
    """
    if name is None:
        name = as_name(f"{stem}-{datetime.now(UTC).strftime('%Y%m%d-%H%M%S')}")
    else:
        check_name(f"{what} name", name)
    path = runs.resolve() / name
    check_new(path, what)
    check_place(path)
    return path


def check_new(path: Path, what: str) -> None:
    """Checks that nothing exists where a new folder for several runs is to go.

    Args:
        path: The folder.
        what: What it is to be, which is also its command and the stem of its JSON file: `sweep`.

    Raises:
        RunError: Something exists there.
    """
    if os.path.lexists(path):
        resumed = f", or resume it: ganlab {what} --resume {line(shlex.quote(str(path)))}"
        again = resumed if (path / f"{what}.json").is_file() else "."
        raise RunError(f"{line(path)} already exists. Choose another --name{again}")


def check_name(what: str, name: str) -> None:
    """Checks that a name chosen by a user can name a folder of runs. Hidden folders are not listed.

    Args:
        what: Whose name it is, for the message: `run name`.
        name: The name.

    Raises:
        RunError: The name is invalid.
    """
    spaced = isinstance(name, str) and name != name.strip()
    if not is_name(name, longest=4 * _LONGEST_NAME) or len(name) > _LONGEST_NAME or spaced:
        also = " and no leading dot" if str(name)[:1] == "." else " and no space at the start or end" if spaced else ""
        raise RunError(
            f"Invalid {what} {name!r:.60}: use at most {_LONGEST_NAME} printable characters and no '/'{also}, "
            "for example 'baseline-2'."
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
