"""Moves unpacked runs to their places: all of them or none, and never into an existing run."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from ganlab.errors import RunError
from ganlab.files import read_json, schema
from ganlab.runs import INFO
from ganlab_archive.members import alike

_MOVING = ".moving"
_LONGEST_LIST = 64 << 20


def check_place(folder: Path, anchor: Path) -> None:
    """Checks that the folder is not part of a run."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is not a folder. Unpack into one: -o DIR.")
    place = anchor.resolve()
    for parent in (place, *place.parents):
        if _is_run(parent):
            raise RunError(f"{folder} is in the run {parent}. Unpack into another folder: -o DIR.")


def check_free(target: Path, folder: Path) -> None:
    """Checks that a run may be moved to its place: it is free, and no run, link or file lies on the path to it."""
    place = folder
    for part in target.relative_to(folder).parts:
        twins = _twins(place, part)
        place = place / part
        if not twins:
            return
        for twin in twins:
            if twin.is_symlink():
                raise RunError(f"{twin} is a link, and nothing is unpacked through links. Choose another: -o DIR.")
            if place == target:
                raise RunError(f"{twin} already exists. Unpack into another folder: -o DIR.")
            if not twin.is_dir():
                raise RunError(f"{twin} is a file where a folder of runs would go. Choose another folder: -o DIR.")
            if _is_run(twin):
                raise RunError(f"{twin} is a run, and nothing is unpacked into a run. Choose another folder: -o DIR.")


def _twins(folder: Path, name: str) -> list[Path]:
    """The entries of a folder with this name, or with one that some file systems treat as the same."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return [folder / other for other in names if alike(other) == alike(name)]


def _is_run(folder: Path) -> bool:
    try:
        return bool(_twins(folder, INFO))
    except OSError:  # a folder that may be traversed but not listed
        return False


def move(scratch: Path, anchor: Path, runs: Sequence[Path]) -> None:
    """Moves runs to their places, all of them or none; a new folder around them is moved as a whole."""
    moves = list(dict.fromkeys(_new_part(scratch, anchor, run) for run in runs))
    if len(moves) > 1:  # a single move is atomic
        (scratch / _MOVING).write_text(json.dumps([os.fsencode(part).hex() for part in moves]))
    moved: list[Path] = []
    try:
        for part in moves:
            (scratch / part).rename(anchor / part)
            moved.append(part)
    except BaseException:
        for part in reversed(moved):
            (anchor / part).rename(scratch / part)
        raise


def _new_part(scratch: Path, anchor: Path, run: Path) -> Path:
    """The first folder on the path to a run's place that does not exist yet."""
    for part in (*reversed(run.relative_to(scratch).parents[:-1]), run.relative_to(scratch)):
        if not os.path.lexists(anchor / part):
            return part
    raise RunError(f"{anchor / part} already exists. Unpack into another folder: -o DIR.")


def finish_moving(left: Path, anchor: Path) -> None:
    """Moves the folders that a killed process had yet to move; they are complete."""
    try:
        names = read_json(left, _MOVING, schema.items(schema.TEXT), most=_LONGEST_LIST, remedy="Remove the folder.")
        parts = [Path(os.fsdecode(bytes.fromhex(name))) for name in names]
    except (OSError, RunError, ValueError):
        return
    for part in parts:
        if (left / part).is_dir() and ".." not in part.parts and not part.is_absolute():
            with contextlib.suppress(RunError, OSError):
                check_free(anchor / part, anchor)
                (left / part).rename(anchor / part)
