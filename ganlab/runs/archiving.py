"""Archives runs in one file, to keep or to share: the same runs give the same bytes, and nothing is ever executed."""

from __future__ import annotations

import contextlib
import gzip
import os
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ganlab.errors import RunError
from ganlab.runs.directory import RunDirectory
from ganlab.runs.listing import started_at
from ganlab.runs.lock import LOCK, at_rest, start_watching
from ganlab.runs.unpacking import Limits, unarchive
from ganlab.support.atomic import new_file
from ganlab.support.paths import open_inside, walk

__all__ = ["ENDINGS", "Archived", "Limits", "archive", "check_ending", "unarchive"]

ENDINGS = (".tar.gz", ".tgz")
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


def check_ending(path: Path) -> None:
    """Checks an archive's name.

    Raises:
        RunError: The name ends in neither .tar.gz nor .tgz.
    """
    if not path.name.endswith(ENDINGS):
        raise RunError(f"{path} must end in {' or '.join(ENDINGS)}, the format of archives.")


def archive(paths: Sequence[Path], output: Path, *, checkpoints: bool = True) -> Archived:
    """Packs runs into one file, complete or not at all.

    Names in the archive are relative to the folder that holds all the runs. Owners and permissions are left out, and
    every time is the start of its run, so that the same files give the same bytes on any machine.

    Args:
        paths: The runs' directories.
        output: The archive to write; an existing file is replaced.
        checkpoints: Whether to include the checkpoints.

    Raises:
        RunError: A directory is not a run, a run is being trained, or the file cannot be written.
    """
    check_ending(output)
    runs = [RunDirectory(path) for path in dict.fromkeys(path.resolve() for path in paths)]
    for run in runs:
        if output.resolve().is_relative_to(run.path):
            raise RunError(f"{output} would be part of the run {run.path} that it archives. Write it elsewhere.")
    root = Path(os.path.commonpath([run.path.parent for run in runs]))
    left_out: list[Path] = []
    start_watching(run.path for run in runs)
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


def _add(packed: tarfile.TarFile, path: Path, name: str, began: int) -> None:
    member = tarfile.TarInfo(name)
    member.mtime = began
    if path.is_dir():
        member.type, member.mode = tarfile.DIRTYPE, 0o755
        packed.addfile(member)
        return
    with open_inside(path.parent, path.name) as file:
        member.size, member.mode = os.fstat(file.fileno()).st_size, 0o644
        packed.addfile(member, file)
