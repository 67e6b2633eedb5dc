"""Handles users' paths and untrusted names and files: refuses URLs, makes names safe, opens files inside their folder.

Every path that a user gives passes through `local`, or `ganlab.bounds.Local` where it is a component's parameter.
A run is data, possibly from a stranger. Every name derived from a run or an experiment passes through `as_name`; every
file read from a run passes through `open_inside`.
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

from ganlab.errors import ConfigError, RunError
from ganlab.support.terminal import line

# Bytes of a name: with a suffix it stays below the limit of 255 of most file systems.
LONGEST_BYTES = 200
_DIGITS = 8
# Bytes that most files have at most.
_SMALL = 1 << 16
# Bytes that a file may claim whatever it has, and for each that it has.
_CLAIMED, _EXPANSION = 64_000_000, 100

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Never waits for the writer of a pipe, and never follows a link that has replaced the file.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
}


def is_url(value: object) -> bool:
    """Whether a path, or a text in the place of one, is a URL: a scheme of two letters or more, for `C:/` is a drive.

    One slash is enough, because that is what `pathlib` leaves of two.
    """
    return isinstance(value, (str, os.PathLike)) and bool(_URL.match(os.fsdecode(value)))


def local(path: str | os.PathLike[str], what: str = "") -> Path:
    """A path that a user gave, for which nothing has been read or made yet.

    Args:
        path: The path.
        what: The option or argument, for the message.

    Raises:
        ConfigError: It is a URL.
    """
    if is_url(path):
        url = line(re.sub(":/+", "://", os.fspath(path), count=1))
        raise ConfigError(
            f"{f'{what} = ' if what else ''}{url} is a URL, and only a path of this machine is taken here: "
            "copy or mount it, and give its path."
        )
    return Path(path)


def is_name(text: object, *, longest: int = LONGEST_BYTES) -> bool:
    """Whether a text can name a file or folder and appears unchanged in every list of files and on every screen.

    Args:
        text: The candidate. A name has printable characters, no slash, and no dot at the start.
        longest: How many bytes a name may have.
    """
    return (
        isinstance(text, str)
        and text.isprintable()
        and not text.startswith(".")
        and not {"/", os.sep} & set(text)
        and 0 < len(text.encode()) <= longest
    )


def as_name(text: str, *, longest: int = LONGEST_BYTES) -> str:
    """Makes a name for a file or folder from any text, which may come from a stranger.

    Args:
        text: The text; a valid name is returned unchanged.
        longest: How many bytes the name may have.

    Returns:
        A name for which `is_name` holds. If it differs from the text, it ends in digits of the text's hash.
    """
    if is_name(text, longest=longest):
        return text
    digits = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    name = "".join(char if char.isprintable() and char not in ("/", os.sep) else "-" for char in text)
    name = re.sub(r"\.{2,}", ".", name).lstrip(".").encode()[: longest - _DIGITS - 1].decode(errors="ignore")
    return f"{name or 'unnamed'}-{digits}"


def open_inside(folder: Path, name: str | os.PathLike[str]) -> BufferedReader:
    """Opens a regular file of a folder for reading, and nothing else that a stranger may have put in its place.

    Args:
        folder: The folder; the path to it may contain links.
        name: The file's path in the folder. Links within it are followed as long as they stay inside the folder.

    Raises:
        RunError: The path leads out of the folder, or is a pipe, a socket or a device.
        OSError: The file is missing or cannot be read; the error names the path.
    """
    parts = tuple(os.fspath(name).split(os.sep))
    try:  # as it mostly is, without a link on the way: far sooner than to look for one
        descriptor = _descend(folder, () if {"", ".."} & {*parts} else parts, folder)
    except (OSError, RunError, ValueError):
        try:
            descriptor = _descend(folder.resolve(), real_parts(folder, name), folder / name)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(folder / name)) from None
    file = os.fdopen(descriptor, "rb")
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:  # something has replaced the file since it was checked
        file.close()
        raise special(folder / name, kind)
    return file


def open_stored(folder: Path, name: str | os.PathLike[str]) -> BufferedReader:
    """Opens a file as `open_inside` does, unless few of its bytes lie on the disk: one hole may claim terabytes.

    Raises:
        RunError: As of `open_inside`, or it is almost all holes.
        OSError: As of `open_inside`.
    """
    file = open_inside(folder, name)
    if not _is_stored(file.fileno()):
        file.close()
        raise RunError(f"{line(folder / name)} is almost all holes: it has few of its bytes. Restore it.")
    return file


def _is_stored(descriptor: int) -> bool:
    """Whether a file's bytes lie on the disk, or enough of them."""
    size, at, stored = os.fstat(descriptor).st_size, 0, 0
    if size <= _CLAIMED or not hasattr(os, "SEEK_DATA"):
        return True
    try:
        while at < size and stored * _EXPANSION < size:
            start = os.lseek(descriptor, at, os.SEEK_DATA)
            at = os.lseek(descriptor, start, os.SEEK_HOLE)
            stored += at - start
    except OSError as error:
        if error.errno != errno.ENXIO:  # that there are no data up to the end
            return True
    finally:
        os.lseek(descriptor, 0, os.SEEK_SET)
    return stored * _EXPANSION >= size


def open_regular(path: str | os.PathLike[str] | bytes) -> BufferedReader:
    """Opens a regular file for reading wherever it is, links followed; nothing else is opened or waited for.

    Raises:
        OSError: The file is missing or cannot be read, or it is a folder, a pipe, a socket or a device.
    """
    kind = stat.S_IFMT(os.stat(path).st_mode)
    if kind == stat.S_IFREG:
        descriptor = os.open(path, _FILE & ~os.O_NOFOLLOW)
        kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
        if kind == stat.S_IFREG:
            return os.fdopen(descriptor, "rb")
        os.close(descriptor)  # something has replaced the file since it was looked at
    number = errno.EISDIR if kind == stat.S_IFDIR else errno.EINVAL
    raise OSError(number, f"it is not a regular file but {_KINDS.get(kind, 'something special')}", path)


def read_inside(folder: Path, name: str | os.PathLike[str], *, most: int) -> bytes:
    """Reads a regular file of a folder, opened by `open_inside`.

    Args:
        folder: The folder.
        name: The file's path in the folder.
        most: How many bytes the file may have.

    Raises:
        RunError: The path leads out of the folder, is not a regular file, or the file is larger.
        OSError: The file is missing or cannot be read.
    """
    with open_inside(folder, name) as file:
        data = file.read(min(most + 1, _SMALL))  # room for more takes as long as reading what is mostly there
        data += file.read(most + 1 - len(data)) if len(data) == _SMALL else b""
    if len(data) > most:
        raise RunError(f"{line(folder / name)} is larger than {most >> 20} MiB: ganlab did not write it. Restore it.")
    return data


def real_parts(folder: Path, name: str | os.PathLike[str]) -> tuple[str, ...]:
    """Follows the links of a path, which must not leave the folder; returns the parts of the real path below it."""
    path = folder / name
    try:
        return path.resolve().relative_to(folder.resolve()).parts
    except (RuntimeError, ValueError):  # a cycle of links; a place outside, or an invalid path
        pass
    link = next((at for at in (path, *path.parents) if at.is_symlink()), path) if "\0" not in str(path) else path
    to = f"a link to {line(os.readlink(link))}, " if link.is_symlink() else ""
    raise RunError(
        f"{line(link)} is {to}out of the folder {line(folder)}. That is data, and nothing is read or written "
        "elsewhere for it: if you trust the link, put what it leads to in its place."
    )


def special(path: Path, kind: int) -> RunError:
    """The error for an entry of this kind, by `stat.S_IFMT`, which is neither a file nor a folder."""
    return RunError(
        f"{line(path)} is {_KINDS.get(kind, 'something special')}, not a regular file. Its folder is data, "
        "and nothing else is read for it: remove it, or put the file in its place."
    )


def check_links(folder: Path) -> None:
    """Refuses a folder that holds a link out of it, a pipe, a socket or a device, before anything is written."""
    for at, _, files in walk(folder):
        for name in files:
            path = Path(at, name)
            try:
                kind = stat.S_IFMT(os.lstat(path).st_mode)
            except FileNotFoundError:  # removed since: a lock, or a temporary file
                continue
            if kind == stat.S_IFLNK:
                real_parts(folder, path.relative_to(folder))
            elif kind != stat.S_IFREG:
                raise special(path, kind)


def walk(top: str | os.PathLike[str]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Like `os.walk`: yields each folder at or below one, the names of its folders, and those of its other entries.

    Works at any depth. Links are not followed and count as files; folders that cannot be read are left out.

    Args:
        top: Where to begin. Folders that the caller removes from the first list are not visited.
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
    """Opens a file by its parts below a folder, following no links; `path` is for the message."""
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
        if kind != stat.S_IFREG:  # never opened, because opening may affect a device
            raise special(path, kind)
        return os.open(last, _FILE, dir_fd=at)
    finally:
        os.close(at)
