"""Names and files that others chose: names that are safe in a path, and files that are opened in their folder alone.

A run is data, perhaps a stranger's. Whatever is named after what a run or an experiment says passes through `as_name`;
whatever is read of a run passes through `open_inside`.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from ganlab.errors import RunError
from ganlab.support.terminal import line

# Bytes of a name: with a suffix beside it, it stays below the 255 of most file systems.
LONGEST_BYTES = 200
_DIGITS = 8

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Not to wait for whoever writes to a pipe; and no link, should one have taken the file's place.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
}


def is_name(text: object, *, longest: int = LONGEST_BYTES) -> bool:
    """Whether a text names one file or folder, in every list of files and on every screen as it is.

    Args:
        text: What may be a name: some printable letters, none of them a slash, the first of them no dot.
        longest: How many bytes it may have.
    """
    return (
        isinstance(text, str)
        and text.isprintable()
        and not text.startswith(".")
        and not {"/", os.sep} & set(text)
        and 0 < len(text.encode()) <= longest
    )


def as_name(text: str, *, longest: int = LONGEST_BYTES) -> str:
    """A name for a file or folder from any text, which may be a stranger's.

    Args:
        text: It stays as it is where it is a name.
        longest: How many bytes the name may have.

    Returns:
        One that `is_name`. Where it is not the text itself, some digits of the text's hash keep it apart from others.
    """
    if is_name(text, longest=longest):
        return text
    digits = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    kept = "".join(char if char.isprintable() and char not in ("/", os.sep) else "-" for char in text)
    kept = re.sub(r"\.{2,}", ".", kept).lstrip(".").encode()[: longest - _DIGITS - 1].decode(errors="ignore")
    return f"{kept or 'unnamed'}-{digits}"


def open_inside(folder: Path, name: str | os.PathLike[str]) -> BufferedReader:
    """Opens a regular file of a folder for reading, whatever else a stranger has put in its place.

    Args:
        folder: The folder, which may itself be reached by links.
        name: The file's path in it. Links on the way are followed as long as they lead to a place in the folder.

    Raises:
        RunError: It leads out of the folder, or is a pipe, a socket or a device.
        OSError: It is not there, or cannot be read; the error names the path.
    """
    path, parts = folder / name, real_parts(folder, name)
    try:
        descriptor = _descend(folder.resolve(), parts, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    file = os.fdopen(descriptor, "rb")
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:  # something else has taken the file's place since it was looked at
        file.close()
        raise special(path, kind)
    return file


def read_inside(folder: Path, name: str | os.PathLike[str], *, most: int) -> bytes:
    """All bytes of a regular file of a folder, as `open_inside` opens it.

    Args:
        folder: The folder.
        name: The file's path in it.
        most: How many bytes it may have.

    Raises:
        RunError: It leads out of the folder, is no regular file, or is larger.
        OSError: It is not there, or cannot be read.
    """
    with open_inside(folder, name) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise RunError(f"{line(folder / name)} is larger than {most >> 20} MiB: ganlab did not write it. Restore it.")
    return data


def real_parts(folder: Path, name: str | os.PathLike[str]) -> tuple[str, ...]:
    """Where a path in a folder leads, links followed: the parts of the way there from the folder.

    Raises:
        RunError: It leads out of the folder.
    """
    path = folder / name
    try:
        return path.resolve().relative_to(folder.resolve()).parts
    except (RuntimeError, ValueError):  # a circle of links; a place outside, or no path at all
        pass
    link = next((at for at in (path, *path.parents) if at.is_symlink()), path) if "\0" not in str(path) else path
    to = f"a link to {line(os.readlink(link))}, " if link.is_symlink() else ""
    raise RunError(
        f"{line(link)} is {to}out of the run's folder. A run is data, and nothing is read or "
        "written elsewhere for it: if you trust the link, put what it leads to in its place."
    )


def special(path: Path, kind: int) -> RunError:
    """The error for what is neither a file nor a folder.

    Args:
        path: Where it is.
        kind: Of which kind, as `stat.S_IFMT` has it.
    """
    return RunError(
        f"{line(path)} is {_KINDS.get(kind, 'something special')}, and no regular file. A run is data, and nothing "
        "else is read for it: remove it, or put the file in its place."
    )


def walk(top: str | os.PathLike[str]) -> Iterator[tuple[str, list[str], list[str]]]:
    """As `os.walk`: each folder at or below one, the names of the folders in it, and those of its other entries.

    However deep the folders are. Links are not followed and count as files; what cannot be looked into is left out.

    Args:
        top: Where to begin. What is taken out of the first list is not walked.
    """
    left = [os.fspath(top)]
    while left:
        at = left.pop()
        folders: list[str] = []
        files: list[str] = []
        try:
            with os.scandir(at) as entries:
                for entry in entries:
                    (folders if entry.is_dir(follow_symlinks=False) else files).append(entry.name)
        except OSError:
            continue
        folders.sort()
        yield at, folders, files
        left += [os.path.join(at, name) for name in reversed(folders)]


def _descend(folder: Path, parts: tuple[str, ...], path: Path) -> int:
    """Opens a file by its way from a folder, on which there are no links; `path` is for the message."""
    at = os.open(folder, _DIRECTORY)
    try:
        for part in parts[:-1]:
            below = os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = below
        last = parts[-1] if parts else "."
        kind = stat.S_IFMT(os.stat(last, dir_fd=at, follow_symlinks=False).st_mode)
        if kind == stat.S_IFDIR:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if kind != stat.S_IFREG:  # not opened at all, which might do something to a device
            raise special(path, kind)
        return os.open(last, _FILE, dir_fd=at)
    finally:
        os.close(at)
