"""Writes files and folders completely or not at all, whatever interrupts the process."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from ganlab.errors import RunError
from ganlab.support.durable import sync
from ganlab.support.full_disk import is_full_disk
from ganlab.support.paths import local
from ganlab.support.signals import orderly_end

# The time in which the reader of a pipe must be there.
_READER_SECONDS = 5.0


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """Context manager: a file of a user's to write bytes to, which replaces an older one if the block ends well.

    Args:
        path: The path of the file. A link leads to the file that is replaced; a device, or a pipe that another process
            reads, is written to.

    Raises:
        RunError: The file cannot be written, or a file read inside the block cannot be read.
    """
    target = Path(os.path.realpath(local(path)))  # which, unlike resolve(), takes links that lead in a circle
    part = _aside(target)
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
            with _opened(target) as file:
                yield file
            return
        with orderly_end(), _replacing(target, part, durable=True) as file:
            yield file
    except OSError as error:
        raise _unwritable(path, part, error) from error


def _opened(path: Path) -> IO[bytes]:
    """Opens a device or a pipe for writing; a pipe that nobody reads is refused soon, and not waited for."""
    until = time.monotonic() + _READER_SECONDS
    while True:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > until:
                raise OSError(errno.ENXIO, "no process reads this pipe or socket") from None
            time.sleep(0.05)
        else:
            os.set_blocking(descriptor, True)
            return open(descriptor, "wb")


@contextlib.contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """Context manager: as `new_file` for a file that one process alone writes; errors are `OSError`s as they are.

    Unless `durable`, it does not wait until the bytes are on disk.
    """
    part = path.with_name(f".{path.name}.tmp")
    part.unlink(missing_ok=True)  # left by a killed process; or a stranger's link, which would be followed
    with _replacing(path, part, durable=durable) as file:
        yield file


def write_text(path: Path, text: str) -> None:
    """Replaces a file's text; a crash leaves the old file or the new one.

    Raises:
        OSError: It cannot be written.
    """
    with replacing(path) as file:
        file.write(encoded(text))


def write_new(path: Path, text: str) -> None:
    """Writes a file that does not exist yet, to the disk."""
    with path.open("xb") as file:
        file.write(encoded(text))
        file.flush()
        os.fsync(file.fileno())


def encoded(text: str) -> bytes:
    """Text as UTF-8. In JSON, a byte of a file name that is not text becomes an escape, which reads back unchanged."""
    return text.encode("utf-8", errors="backslashreplace")


@contextlib.contextmanager
def _replacing(path: Path, part: Path, *, durable: bool) -> Iterator[IO[bytes]]:
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def new_folder(path: Path, refused: Callable[[Path, OSError], RunError] | None = None) -> Iterator[Path]:
    """Context manager: a folder to fill, which gets its name when the block ends without an error.

    Whenever the process is killed, the folder is there with all that the block wrote, or not at all.

    Args:
        path: The path of the folder. Only an empty folder may exist there.
        refused: Returns the error for a folder that cannot be written.

    Yields:
        The temporary folder, beside `path`.

    Raises:
        RunError: The path is taken, or the folder cannot be written.
    """
    check_free(local(path))
    made = [parent for parent in path.parents if not parent.exists()]
    part = _aside(path)
    with orderly_end():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.mkdir()
            yield part
            sync(part)
            part.rename(path)  # replaces an empty folder, too
        except BaseException as error:
            shutil.rmtree(part, ignore_errors=True)
            for parent in made:
                try:
                    parent.rmdir()
                except OSError:  # never created, or something else is in it by now
                    break
            if is_full_disk(error) and not isinstance(error, OSError):  # TensorFlow's
                raise _unwritable(path, part, OSError(errno.ENOSPC, str(error).split("\n")[0])) from error
            if isinstance(error, OSError):
                raise (refused(path, error) if refused else _unwritable(path, part, error)) from error
            raise


@contextlib.contextmanager
def scratch_folder(prefix: str, place: str | os.PathLike[str] | None = None) -> Iterator[str]:
    """Context manager: a temporary folder, which is removed by SIGTERM and SIGHUP, too.

    Args:
        prefix: The beginning of its name.
        place: The folder that it is made in; by default that of the system.
    """
    with orderly_end(), tempfile.TemporaryDirectory(prefix=prefix, dir=place) as folder:
        yield folder


def check_free(path: Path) -> None:
    """Checks that a folder can be created.

    Raises:
        RunError: Anything but an empty folder exists there, or the path may not be read.
    """
    try:
        if path.is_dir() and not any(path.iterdir()):
            return
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}. Choose another folder.") from error
    if path.exists() or path.is_symlink():
        what = "a folder with files in it" if path.is_dir() else "a file"
        raise RunError(f"{path} is {what} already. Choose a folder that does not exist yet or is empty.")


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")


def _unwritable(path: Path, part: Path, error: OSError) -> RunError:
    reason = error.strerror or str(error)
    where = f"{error.filename}: " if error.filename and Path(str(error.filename)) != part else ""
    return RunError(f"{path} cannot be written: {where}{reason}. Nothing was left behind.")
