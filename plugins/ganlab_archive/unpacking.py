"""Unpacks an untrusted archive of runs: all of it or nothing, whatever it holds and whatever interrupts it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ganlab.commands import handling
from ganlab.errors import RunError
from ganlab.files import locked_folder, open_regular, walk
from ganlab.runs import INFO, LOCK, find_runs
from ganlab_archive.members import Limits, Names
from ganlab_archive.placing import check_free, check_place, finish_moving, move
from ganlab_archive.tarring import TarReader, quoted

_ASIDE = ".unpacking-"


def unarchive(path: Path, folder: Path, limits: Limits | None = None) -> list[Path]:
    """Unpacks an untrusted archive of runs: plain files below `folder`, or nothing.

    Nothing is written into an existing run. A signal (SIGINT, SIGTERM, SIGHUP) takes effect between two pieces, after
    everything has been removed again. A killed process leaves a hidden folder, which the next call removes. If it was
    killed in the instant between moving two runs, the next call moves the rest.

    Args:
        path: The archive.
        folder: The folder to unpack into.
        limits: How much the archive may hold.

    Returns:
        The directories of the runs.

    Raises:
        RunError: The file is not a complete archive of runs, holds too much or anything but plain files, names a path
            outside the folder, or would write into an existing run.
    """
    received: list[int] = []

    def pause() -> None:
        if received:
            raise _StoppedError

    try:
        with handling(lambda number, frame: received.append(number)), _opened(path) as file:
            anchor = next(place for place in (folder, *folder.absolute().parents) if place.is_dir())
            check_place(folder, anchor)
            with _aside(anchor) as scratch:
                inner = Path(os.path.relpath(folder.absolute(), anchor.absolute()))
                below = scratch / inner
                chosen = limits or Limits()
                names = Names(f"{path} is not unpacked", chosen, chosen.room(os.fstat(file.fileno()).st_size))
                files = _extract(TarReader(file, str(path), pause), below, names)
                runs = _runs_only(path, below, files)
                for run in runs:
                    check_free(anchor / run.relative_to(scratch), anchor / inner)
                pause()
                move(scratch, anchor, runs)
                targets = [folder / run.relative_to(below) for run in runs]
    except _StoppedError:
        signal.raise_signal(received[0])  # now to its usual handler, which ends the process as a rule
        raise RunError(f"Unpacking {path} was interrupted; nothing was left behind.") from None
    except OSError as error:
        raise RunError(f"{error.filename or folder} cannot be written: {error.strerror or error}.") from error
    if received:
        signal.raise_signal(received[0])
    return targets


class _StoppedError(BaseException):
    """Raised once a signal has arrived, between two pieces, so that none interrupts steps that belong together."""


def _opened(path: Path) -> IO[bytes]:
    try:
        return open_regular(path)
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}.") from error


# --- The hidden folder that everything is unpacked into first ---


@contextlib.contextmanager
def _aside(anchor: Path) -> Iterator[Path]:
    """Context manager: a hidden folder beside the runs' place, from which they are moved; stale ones are removed."""
    for left in anchor.glob(f"{_ASIDE}*"):
        _remove_if_left(left)
    scratch = anchor / f"{_ASIDE}{secrets.token_hex(4)}"
    scratch.mkdir(mode=0o700)
    with locked_folder(scratch):
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _remove_if_left(path: Path) -> None:
    """Removes the hidden folder of a killed process."""
    with contextlib.suppress(OSError, RecursionError):  # RecursionError: folders that are nested too deeply
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            finish_moving(path, path.parent)
            shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(descriptor)


def _extract(packed: TarReader, below: Path, names: Names) -> list[Path]:
    """Unpacks an archive and returns its files."""
    below.mkdir(parents=True, exist_ok=True)
    files, now = [], time.time()
    for member in packed:
        place = below.joinpath(*names.add(member))
        if member.isdir():
            place.mkdir(parents=True, exist_ok=True)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("xb") as file:
            for piece in packed.data(member):
                file.write(piece)
        os.utime(place, (min(member.mtime, now),) * 2)
        files.append(place)
    return files


def _runs_only(path: Path, below: Path, files: list[Path]) -> list[Path]:
    """Returns the runs that were unpacked. Empty folders around them and locks in them are removed."""
    runs = list(find_runs(below))
    if not runs or below in runs:
        raise RunError(f"{path} is not an archive of runs: no folder in it has a {INFO}.")
    stray = min((file for file in files if set(runs).isdisjoint(file.parents)), default=None)
    if stray is not None:
        raise RunError(f"{path} holds {quoted(stray.relative_to(below))}, which is not part of a run: not unpacked.")
    around = {parent for run in runs for parent in run.parents}
    for at, folders, _ in walk(below):
        place = Path(at)
        if place in runs:
            folders.clear()
            if not (place / LOCK).is_dir():
                (place / LOCK).unlink(missing_ok=True)  # left by a process on another machine
        elif place not in around:
            folders.clear()
            shutil.rmtree(place)
    return runs
