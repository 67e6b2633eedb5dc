"""The files of a run that is being trained, held as they are at one time."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ganlab.errors import RunError
from ganlab.files import is_name, open_inside, walk
from ganlab.runs import LOCK
from ganlab_remote.manifests import CHECKPOINTS, PART

# The file in a run that names its mirror and the newest manifest there.
RECORD = "mirror.json"


@dataclass(frozen=True)
class Held:
    """A file of a snapshot."""

    path: Path
    size: int
    mark: tuple[int, ...]

    def parts(self) -> Iterator[bytes]:
        """Yields its bytes, in parts."""
        left = self.size
        with open_inside(self.path.parent, self.path.name) as file:
            while left:
                data = file.read(min(PART, left))
                if not data:
                    raise RunError(f"{self.path} was cut while it was read.")
                left -= len(data)
                yield data


@contextlib.contextmanager
def snapshot(run: Path) -> Iterator[dict[str, Held]]:
    """Context manager: holds a run's files by links, so that training may remove and replace them meanwhile.

    Checkpoints come first: the rows up to a checkpoint are on disk before it, so the state is one that a killed process
    could have left, and such a run resumes as if it had not been stopped.
    """
    aside = run.with_name(f".{run.name}.mirroring")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    try:
        held: dict[str, Held] = {}
        for path in _files(run):
            with contextlib.suppress(FileNotFoundError):  # an old checkpoint, removed meanwhile
                held[path.relative_to(run).as_posix()] = _hold(path, aside / str(len(held)))
        # A checkpoint that is still there with all its files was held whole.
        here = {path.relative_to(run).as_posix() for path in _below(run, run / CHECKPOINTS)}
        gone = {name.rpartition("/")[0] for name in held if name.startswith(f"{CHECKPOINTS}/") and name not in here}
        yield {name: file for name, file in held.items() if name.rpartition("/")[0] not in gone}
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _files(run: Path) -> Iterator[Path]:
    yield from _below(run, run / CHECKPOINTS)
    yield from _below(run, run)


def _below(run: Path, top: Path) -> Iterator[Path]:
    for at, folders, files in walk(top):
        folders[:] = [name for name in folders if is_name(name) and (Path(at, name) != run / CHECKPOINTS)]
        for name in files:
            if is_name(name) and not (Path(at) == run and name in (LOCK, RECORD)) and not Path(at, name).is_symlink():
                yield Path(at, name)


def _hold(path: Path, link: Path) -> Held:
    fact = path.lstat()
    try:
        os.link(path, link, follow_symlinks=False)
        fact = link.lstat()
    except FileNotFoundError:
        raise
    except OSError:  # a file system without links
        shutil.copyfile(path, link)
    return Held(link, fact.st_size, (fact.st_ino, fact.st_size, fact.st_mtime_ns))
