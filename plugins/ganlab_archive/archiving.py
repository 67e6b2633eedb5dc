"""Archives runs in one file, to keep or to share: the same runs give the same bytes, and nothing is ever executed."""

from __future__ import annotations

import gzip
import os
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ganlab.errors import RunError
from ganlab.files import line, new_file, open_inside, walk
from ganlab.runs import INFO, LOCK, RunDirectory, at_rest, started_at
from ganlab_archive.members import Limits, Names

_ENDINGS = (".tar.gz", ".tgz")
_CHECKPOINTS = "checkpoints"
_LEVEL = 6


@dataclass(frozen=True)
class Archived:
    """The contents of an archive.

    Attributes:
        names: The runs' names within the archive.
        left_out: Links, which are not followed or archived.
        bytes: The archive's size.
    """

    names: list[str]
    left_out: list[Path]
    bytes: int


def archive(paths: Sequence[Path], output: Path, *, checkpoints: bool = True, limits: Limits | None = None) -> Archived:
    """Packs runs into one file, complete or not at all.

    Names in the archive are relative to the folder that holds all the runs. Owners and permissions are left out, and
    every time is the start of its run, so that the same files give the same bytes on any machine. What `unarchive` with
    the same limits would refuse is refused.

    Args:
        paths: The runs' directories.
        output: The archive to write; an existing file is replaced.
        checkpoints: Whether to include the checkpoints.
        limits: How much the archive may hold.

    Raises:
        RunError: A directory is not a run, a run is being trained, `unarchive` would refuse the archive, or the file
            cannot be written.
    """
    if not output.name.endswith(_ENDINGS):
        raise RunError(f"{output} must end in {' or '.join(_ENDINGS)}, the format of archives.")
    runs = [RunDirectory(path) for path in dict.fromkeys(path.resolve() for path in paths)]
    for run in runs:
        if output.resolve().is_relative_to(run.path):
            raise RunError(f"{output} would be part of the run {run.path} that it archives. Write it elsewhere.")
    root = Path(os.path.commonpath([run.path.parent for run in runs]))
    _check_places(runs, root)
    left_out: list[Path] = []
    with at_rest(runs, shared=True):
        members = [
            (path, _member(path, root, run))
            for run in sorted(runs, key=lambda run: run.path)
            for path in _contents(run.path, checkpoints, left_out)
        ]
        limits = limits or Limits()
        names = Names(f"{line(output)} is not written, because it could not be unpacked", limits, limits.bytes)
        for _, member in members:
            names.add(member)
        with new_file(output) as file:
            _pack(file, members, _LEVEL)
            if file.seekable() and sum(member.size for _, member in members) > limits.room(file.tell()):
                # Mostly zeros, which `unarchive` takes for an attack: without compression it has no such doubt.
                file.seek(0)
                file.truncate()
                _pack(file, members, 0)
    return Archived([run.path.relative_to(root).as_posix() for run in runs], left_out, output.stat().st_size)


def _check_places(runs: Sequence[RunDirectory], root: Path) -> None:
    """Checks that the runs would be found again below the folder that holds them all."""
    for run in runs:
        inner = run.path.relative_to(root)
        hidden = next((part for part in inner.parts if part.startswith(".")), None)
        if hidden is not None:
            raise RunError(
                f"{line(run.path)} cannot be archived: hidden folders are not searched for runs. Rename {line(hidden)}."
            )
        if (run.path / INFO).is_symlink():
            raise RunError(f"{line(run.path / INFO)} is a link, and links are left out. Put the file in its place.")
        outer = next((other for other in runs if other.path in run.path.parents), None)
        if outer is not None:
            raise RunError(f"{line(run.path)} is part of the run {line(outer.path)}. Archive only that.")


def _contents(folder: Path, checkpoints: bool, left_out: list[Path]) -> Iterator[Path]:
    """Yields a run's folders and files in order, without locks and the temporary files of killed processes."""
    yield folder
    for place, folders, files in walk(folder):
        below = Path(place)
        links = []
        folders[:] = [name for name in folders if not name.startswith(".")]
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


def _member(path: Path, root: Path, run: RunDirectory) -> tarfile.TarInfo:
    member = tarfile.TarInfo(path.relative_to(root).as_posix())
    member.mtime = max(0, int(started_at(run.path, run.info).timestamp()))
    if path.is_dir():
        member.type, member.mode = tarfile.DIRTYPE, 0o755
    else:
        member.size, member.mode = path.stat().st_size, 0o644
    return member


def _pack(file: IO[bytes], members: Sequence[tuple[Path, tarfile.TarInfo]], level: int) -> None:
    with (
        gzip.GzipFile("", "wb", level, file, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as packed,
    ):
        for path, member in members:
            if member.isdir():
                packed.addfile(member)
                continue
            with open_inside(path.parent, path.name) as data:
                member.size = os.fstat(data.fileno()).st_size
                packed.addfile(member, data)
