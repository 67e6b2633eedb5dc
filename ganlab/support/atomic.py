"""Files and folders that are there whole or not at all, whatever stops the process that writes them."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ganlab.errors import RunError


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write bytes to, which takes its place when the block ends; until then what was there before stays.

    Args:
        path: Where it goes. An older file of that name is replaced.

    Raises:
        RunError: It cannot be written, or something that is read inside the block cannot be read.
    """
    part = _aside(path)
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _unwritable(path, part, error) from error
        raise


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which gets its name when the block ends.

    Args:
        path: Its name. Nothing may be there yet but an empty folder.

    Yields:
        Where it is until then, beside its place.

    Raises:
        RunError: Something is there, or it cannot be written.
    """
    check_free(path)
    made = [parent for parent in path.parents if not parent.exists()]
    part = _aside(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.mkdir()
        yield part
        part.rename(path)  # over an empty folder, too
    except BaseException as error:
        shutil.rmtree(part, ignore_errors=True)
        for parent in made:
            try:
                parent.rmdir()
            except OSError:  # never made, or something else is in it by now
                break
        if isinstance(error, OSError):
            raise _unwritable(path, part, error) from error
        raise


def check_free(path: Path) -> None:
    """Checks that a folder can be made.

    Raises:
        RunError: There is something, more than an empty folder, or looking is not allowed.
    """
    try:
        if path.is_dir() and not any(path.iterdir()):
            return
    except OSError as error:
        raise RunError(f"{path} cannot be looked into: {error.strerror}. Name another folder.") from error
    if path.exists() or path.is_symlink():
        what = "a folder with files in it" if path.is_dir() else "a file"
        raise RunError(f"{path} is {what} already. Name a folder that is not there yet, or empty.")


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")


def _unwritable(path: Path, part: Path, error: OSError) -> RunError:
    reason = error.strerror or str(error)
    where = f"{error.filename}: " if error.filename and Path(str(error.filename)) != part else ""
    return RunError(f"{path} cannot be written: {where}{reason}. Nothing of it was left.")
