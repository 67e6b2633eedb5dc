"""Runs taken off the disk: all of one, or what takes the room in it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from ganlab.errors import RunError
from ganlab.runs.directory import CONFIG, RunDirectory, find_runs
from ganlab.runs.listing import size_on_disk
from ganlab.runs.lock import at_rest
from ganlab.support.terminal import line

# What `keep_metrics` takes.
HEAVY = ("checkpoints", "samples")


@contextlib.contextmanager
def removable(paths: Sequence[Path]) -> Iterator[list[RunDirectory]]:
    """Checks that runs may be removed, and keeps others from training them until the block ends.

    Args:
        paths: The runs' directories. One that is given twice counts once.

    Yields:
        The runs.

    Raises:
        RunError: One is no run of ganlab's, is a link, holds further runs, or is in use.
    """
    unique = {path.resolve(): path for path in paths}
    with contextlib.ExitStack() as stack:
        runs = [_checked(path) for path in unique.values()]
        for run in runs:
            stack.enter_context(at_rest(run, shared=False))
        yield runs


def weight(run: RunDirectory, *, keep_metrics: bool) -> int:
    """Bytes that removing a run frees."""
    parts = [run.path / name for name in HEAVY] if keep_metrics else [run.path]
    return sum(size_on_disk(part) for part in parts if not part.is_symlink())


def remove(run: RunDirectory, *, keep_metrics: bool = False) -> None:
    """Removes a run. What its links point to stays.

    Args:
        run: Of those of `removable`.
        keep_metrics: Remove the checkpoints and the pictures of samples alone.

    Raises:
        RunError: Something cannot be removed; what can is gone.
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
    # Under a hidden name first: half a run must not be taken for one.
    aside = path.with_name(f".{path.name}.removed-{secrets.token_hex(4)}")
    path.rename(aside)
    try:
        shutil.rmtree(aside)
    except (RecursionError, OSError):
        # Folders in folders, more than that function has calls or open files for: side by side, they go.
        _flatten(aside)
        shutil.rmtree(aside)


def _flatten(top: Path) -> None:
    """Moves every folder below one directly into it."""
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
    RunDirectory(path)  # says what is there instead, by the name that was given
    run = RunDirectory(path.resolve())
    if "status" not in run.info or not (path / CONFIG).is_file():
        raise RunError(
            f"{line(path)} was not made by ganlab: its run.json has no status, or {CONFIG} is missing. "
            "Remove it with rm."
        )
    within = next((found for folder in _folders(path) for found in find_runs(folder)), None)
    if within is not None:
        raise RunError(f"{line(path)} has another run in it, {line(within)}. Move that out, or remove it first.")
    return run


def _folders(path: Path) -> list[Path]:
    return [item for item in sorted(path.iterdir()) if item.is_dir() and not item.is_symlink()]
