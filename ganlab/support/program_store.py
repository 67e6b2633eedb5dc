"""A folder of programs that TensorFlow has compiled: sound ones, the user's own, and not more than a number of bytes.

A program is a file `KIND/DIGEST-NAME`: the circumstances in which it was compiled, the hash of its bytes, and
TensorFlow's name for it. TensorFlow ends a run at an entry that is damaged, and executes one that is not. So it never
sees this folder: each process has a room of its own in it, with links to the programs that were found sound, and
programs that appear there are kept.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ganlab.support.hashing import digest

_PROGRAM = re.compile(r"([0-9a-f]{32})-([^/]+\.pb)")
_ROOM = ".room-"
_SPARE = 1 << 30  # bytes; TensorFlow ends a run whose program it cannot write
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def fault(folder: Path) -> str:
    """Makes a folder, and returns in words why programs in it must not be executed or written; empty if they may be."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for place in (folder, *folder.parents):
            status = place.stat()
            whose = {os.geteuid()} if place == folder else {os.geteuid(), 0}
            if status.st_uid not in whose:
                return f"{place} belongs to another user, whose programs would be executed"
            if status.st_mode & _OTHERS and not (place != folder and status.st_mode & stat.S_ISVTX):
                return f"others may write into {place}, and what they write would be executed (chmod go-w)"
        if shutil.disk_usage(folder).free < _SPARE:
            return f"{folder} has less than {_SPARE >> 30} GB of free space"
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        return f"{folder} cannot be used: {error.strerror}"
    return ""


def sizes(folder: Path) -> list[tuple[float, int, Path]]:
    """When each program was last used, its size in bytes, and its path, in that order."""
    programs = []
    for path in folder.glob("[!.]*/*.pb"):
        with contextlib.suppress(OSError):  # removed by another process
            status = path.lstat()
            programs.append((status.st_mtime, status.st_size, path))
    return sorted(programs)


class Room:
    """A process's own folder, for TensorFlow to read programs from and to write them into."""

    def __init__(self, store: Path, most: int) -> None:
        """Makes it in a `store` in which `fault` finds none, and removes those of processes that were killed."""
        self._store, self._most, self._kind = store, most, store
        self._linked: set[str] = set()
        with self._alone():
            for left in store.glob(f"{_ROOM}*"):
                if _is_left(left):
                    shutil.rmtree(left, ignore_errors=True)
            self.path = Path(tempfile.mkdtemp(prefix=_ROOM, dir=store))
            self._held = _lock(self.path)

    def fill(self, kind: str) -> None:
        """Links the sound programs of a kind, in place of those of another; removes what is not sound."""
        if self._store / kind != self._kind:
            self.empty()
        self._kind = self._store / kind
        with contextlib.suppress(OSError):
            self._kind.mkdir(mode=0o700, exist_ok=True)
            for file in self._kind.iterdir():
                match = _PROGRAM.fullmatch(file.name)
                if match is not None and match[2] in self._linked:
                    continue
                if match is None or _digest(file) != match[1]:
                    file.unlink(missing_ok=True)
                    continue
                os.link(file, self.path / match[2])
                self._linked.add(match[2])
                # Reading sets the time of access if that is before the time of change: later it shows what was used.
                os.utime(file, ns=(0, file.stat().st_mtime_ns))

    def keep(self) -> None:
        """Keeps the programs that have appeared since, and removes the longest unused if there are too many."""
        with contextlib.suppress(OSError), self._alone():
            known = {match[2] for file in self._kind.iterdir() if (match := _PROGRAM.fullmatch(file.name))}
            for file in self.path.glob("*.pb"):
                if file.name in self._linked:
                    if file.stat().st_atime_ns:
                        os.utime(file)
                    continue
                file.chmod(0o600)
                if file.name not in known:
                    os.link(file, self._kind / f"{_digest(file)}-{file.name}")
                self._linked.add(file.name)
            programs = sizes(self._store)
            total = sum(size for _, size, _ in programs)
            for _, size, file in programs:
                if total > self._most:
                    file.unlink(missing_ok=True)
                    total -= size

    def empty(self) -> None:
        """Removes the links."""
        for file in self.path.glob("*.pb"):
            file.unlink(missing_ok=True)
        self._linked.clear()

    def close(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._held)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Context manager: no other process changes the store, on a file system that has locks."""
        descriptor = os.open(self._store, os.O_RDONLY)
        try:
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _lock(folder: Path) -> int:
    """Opens and locks a folder, if its file system has locks, until the descriptor is closed or the process ends."""
    descriptor = os.open(folder, os.O_RDONLY)
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _is_left(room: Path) -> bool:
    """Whether the process that made a folder has ended; False where that cannot be known."""
    try:
        descriptor = os.open(room, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _digest(file: Path) -> str:
    """The hash of a program; empty if it is not a file of this user's alone."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as opened:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & _OTHERS:
            return ""
        return digest(opened.read())
