"""Runs as one file, to keep or to hand on: the same bytes for the same runs, and nothing of it is ever executed."""

from __future__ import annotations

import contextlib
import gzip
import os
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ganlab.errors import RunError
from ganlab.runs.listing import started_at
from ganlab.runs.lock import LOCK, at_rest
from ganlab.runs.run import Run, find_runs
from ganlab.runs.writing import new_file

ENDINGS = (".tar.gz", ".tgz")
_CHECKPOINTS = "checkpoints"
_LEVEL = 6


@dataclass(frozen=True)
class Archived:
    """What went into an archive.

    Attributes:
        names: Of the runs, as they are called in it.
        left_out: Links, which are not followed.
        bytes: The archive's size.
    """

    names: list[str]
    left_out: list[Path]
    bytes: int


def check_ending(path: Path) -> None:
    """Checks an archive's name.

    Raises:
        RunError: It ends in neither .tar.gz nor .tgz.
    """
    if not path.name.endswith(ENDINGS):
        raise RunError(f"{path} must end in {' or '.join(ENDINGS)}, which is what an archive is.")


def archive(paths: Sequence[Path], output: Path, *, checkpoints: bool = True) -> Archived:
    """Packs runs into one file, whole or not at all.

    Names in it begin below the folder that holds all the runs. Owners and permissions are left out, and times are those
    at which the runs were begun, so that the same files make the same bytes on any machine.

    Args:
        paths: The runs' directories.
        output: The file, which is replaced if it is there.
        checkpoints: Whether to take them along.

    Raises:
        RunError: One is no run or is being trained, or the file cannot be written.
    """
    check_ending(output)
    runs = [Run(path) for path in dict.fromkeys(path.resolve() for path in paths)]
    for run in runs:
        if output.resolve().is_relative_to(run.path):
            raise RunError(f"{output} would be part of the run {run.path} that it archives. Write it elsewhere.")
    root = Path(os.path.commonpath([run.path.parent for run in runs]))
    left_out: list[Path] = []
    with contextlib.ExitStack() as stack:
        for run in runs:
            stack.enter_context(at_rest(run, shared=True))
        file = stack.enter_context(new_file(output))
        zipped = stack.enter_context(gzip.GzipFile("", "wb", _LEVEL, file, mtime=0))
        packed = stack.enter_context(tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT))
        for run in sorted(runs, key=lambda run: run.path):
            began = int(started_at(run.path, run.info).timestamp())
            for path in _contents(run.path, checkpoints, left_out):
                _add(packed, path, path.relative_to(root).as_posix(), began)
    return Archived([run.path.relative_to(root).as_posix() for run in runs], left_out, output.stat().st_size)


def unarchive(path: Path, folder: Path) -> list[Path]:
    """Unpacks an archive of runs, perhaps a stranger's: plain files below `folder`, or nothing.

    Args:
        path: The archive.
        folder: Where the runs go.

    Returns:
        The runs.

    Raises:
        RunError: It is no archive of runs, names something outside, or a run of it is there already.
    """
    if not hasattr(tarfile, "data_filter"):
        raise RunError("This Python cannot unpack archives of strangers safely: take 3.11.4 or newer.")
    new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Beside its place, so that a run is moved there in one piece.
        with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder) as scratch:
            return _unpacked(path, Path(scratch), folder)
    except BaseException as error:
        if new:
            with contextlib.suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise RunError(f"{error.filename or folder} cannot be written: {error.strerror or error}.") from error
        raise


def _unpacked(path: Path, scratch: Path, folder: Path) -> list[Path]:
    _unpack(path, scratch)
    found = list(find_runs(scratch))
    targets = [folder / run.relative_to(scratch) for run in found]
    _check_runs_only(path, scratch, found, targets)
    for run, target in zip(found, targets, strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)
        run.rename(target)
    return targets


def _contents(folder: Path, checkpoints: bool, left_out: list[Path]) -> Iterator[Path]:
    """A run's folders and files in order; not what a process that was killed left half-written, nor a lock."""
    yield folder
    for place, folders, files in os.walk(folder):
        below = Path(place)
        links = [below / name for name in folders if (below / name).is_symlink()]
        folders[:] = sorted(name for name in folders if not name.startswith(".") and below / name not in links)
        if below == folder and not checkpoints:
            folders[:] = [name for name in folders if name != _CHECKPOINTS]
        yield from (below / name for name in folders)
        for name in sorted(files):
            path = below / name
            if path.is_symlink():
                links.append(path)
            elif not name.startswith(".") and path != folder / LOCK and path.is_file():
                yield path
        left_out += sorted(links)


def _add(packed: tarfile.TarFile, path: Path, name: str, began: int) -> None:
    member = tarfile.TarInfo(name)
    member.mtime = began
    if path.is_dir():
        member.type, member.mode = tarfile.DIRTYPE, 0o755
        packed.addfile(member)
        return
    with path.open("rb") as file:
        member.size, member.mode = os.fstat(file.fileno()).st_size, 0o644
        packed.addfile(member, file)


def _unpack(path: Path, scratch: Path) -> None:
    try:
        file = path.open("rb")
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        with file, tarfile.open(fileobj=file, mode="r:gz") as packed:
            for member in packed:
                if not (member.isreg() or member.isdir()):
                    raise RunError(f"{path} holds {member.name!r}, neither a file nor a folder: not unpacked.")
                packed.extract(member, scratch, filter="data")
    except tarfile.FilterError as error:
        raise RunError(f"{path} is not unpacked: {error}.") from error
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise RunError(f"{path} is damaged, or is no archive: {error}.") from error


def _check_runs_only(path: Path, scratch: Path, found: Sequence[Path], targets: Sequence[Path]) -> None:
    if not found or scratch in found:
        raise RunError(f"{path} is no archive of runs: no folder in it has a run.json.")
    strays = (item for item in sorted(scratch.rglob("*")) if item.is_file() and not set(found) & set(item.parents))
    stray = next(strays, None)
    if stray is not None:
        raise RunError(f"{path} holds {str(stray.relative_to(scratch))!r}, which is part of no run: not unpacked.")
    for target in targets:
        if os.path.lexists(target):
            raise RunError(f"{target} is there already. Unpack into another folder: -o DIR.")
