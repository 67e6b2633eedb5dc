"""Removes runs from the disk: whole runs, or only their large parts."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from ganlab.errors import RunError
from ganlab.files import line
from ganlab.runs import CONFIG, RunDirectory, at_rest, find_runs, size_on_disk

# The folders that `keep_metrics` removes.
HEAVY = ("checkpoints", "samples")


@contextlib.contextmanager
def removable(paths: Sequence[Path]) -> Iterator[list[RunDirectory]]:
    """Context manager: checks that runs may be removed, and locks them until the block ends.

    Args:
        paths: The runs' directories; duplicates count once.

    Yields:
        The runs.

    Raises:
        RunError: A directory is not a run made by ganlab, is a link, contains other runs, or is in use.
    """
    unique = {path.resolve(): path for path in paths}
    runs = [_checked(path) for path in unique.values()]
    with at_rest(runs, shared=False):
        yield runs


def weight(run: RunDirectory, *, keep_metrics: bool) -> int:
    """The number of bytes that removing a run frees."""
    parts = [run.path / name for name in HEAVY] if keep_metrics else [run.path]
    return sum(size_on_disk(part) for part in parts if not part.is_symlink())


def remove(run: RunDirectory, *, keep_metrics: bool = False) -> None:
    """Removes a run. The targets of its links stay.

    Args:
        run: One of the runs that `removable` yielded.
        keep_metrics: Remove only the checkpoints and the sample images.

    Raises:
        RunError: Something cannot be removed; the rest has been.
    """
    try:
        if not keep_metrics:
            _remove(run.path)
            return
        for name in HEAVY:
            if os.path.lexists(run.path / name):
                _remove(run.path / name)
    except OSError as error:
        where = line(error.filename or run.path)
        raise RunError(f"{where} cannot be removed: {error.strerror or error}.") from error


def _remove(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return
    # Rename it to a hidden name first: half a run must not be mistaken for a run.
    aside = path.with_name(f".{path.name}.removed-{secrets.token_hex(4)}")
    path.rename(aside)
    try:
        shutil.rmtree(aside)
    except (RecursionError, OSError):
        # Nested too deeply for rmtree's recursion or the limit on open files: flatten first.
        _flatten(aside)
        shutil.rmtree(aside)


def _flatten(top: Path) -> None:
    """Moves every folder at any depth directly into the top folder."""
    left, count = [top], 0
    while left:
        at = left.pop()
        with os.scandir(at) as entries:
            below = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        for path in below:
            count += 1
            moved = top / f"{secrets.token_hex(8)}-{count}"
            os.rename(path, moved)
            left.append(moved)


def _checked(path: Path) -> RunDirectory:
    if path.is_symlink():
        raise RunError(
            f"{line(path)} is a link to {line(os.readlink(path))}. Name that folder, or remove the link with rm."
        )
    RunDirectory(path)  # reports what is there instead, under the name that was given
    run = RunDirectory(path.resolve())
    if "status" not in run.info or not (path / CONFIG).is_file():
        raise RunError(
            f"{line(path)} was not made by ganlab: its run.json has no status, or {CONFIG} is missing. "
            "Remove it with rm."
        )
    within = next((found for folder in _folders(path) for found in find_runs(folder)), None)
    if within is not None:
        raise RunError(f"{line(path)} contains another run, {line(within)}. Move that out, or remove it first.")
    return run


def _folders(path: Path) -> list[Path]:
    return [item for item in sorted(path.iterdir()) if item.is_dir() and not item.is_symlink()]
