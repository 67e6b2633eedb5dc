"""Lists the runs below a folder from their files alone: without TensorFlow, and without executing anything."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ganlab.runs.changes import Change, changes_of
from ganlab.runs.directory import INFO, find_runs
from ganlab.runs.health import complaints_of, warnings_of
from ganlab.runs.info import read_fields, why_unreadable
from ganlab.runs.lock import holder, start_watching
from ganlab.support.paths import walk
from ganlab.support.terminal import line

# Digits of the step in a checkpoint's name.
_STEP_DIGITS = 19
_LAST_SECOND = 253402300799  # of the year 9999, the last one that datetime has

# The statuses that run.json may hold, followed by those that only inspecting the run can show.
STATUSES = ("running", "completed", "interrupted", "failed", "diverged", "killed", "unreadable")


@dataclass(frozen=True)
class Listed:
    """A summary of one run.

    Attributes:
        path: Its directory.
        status: One of `STATUSES`: "killed" if run.json has "running" but no process trains the run, "unreadable" if
            run.json or its status cannot be read.
        step: Number of generator updates done.
        steps: Number of generator updates of the whole run.
        started: The time of the start, in ISO 8601 and UTC.
        bytes: Its size on disk.
        dataset: The dataset's name.
        constraints: The constraints' names, joined by commas; empty for none.
        seed: The run's seed.
        problem: A sentence on why it cannot be read, or on what is wrong with its files; None if nothing is.
        health: The complaints of the latest health check, empty for a healthy run; None if it was never checked.
        warnings: The warnings that it issued.
        changes: The changes made midway by `--resume --allow-changes`.
    """

    path: Path
    status: str
    step: int | None = None
    steps: int | None = None
    started: str | None = None
    bytes: int = 0
    dataset: str | None = None
    constraints: str | None = None
    seed: int | None = None
    problem: str | None = None
    health: tuple[str, ...] | None = None
    warnings: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()


def listed(folder: str | os.PathLike[str], status: str | None = None) -> Iterator[Listed]:
    """The runs at or below a folder, sorted by path.

    Args:
        folder: Where to look.
        status: Yield only runs with this status.
    """
    paths = list(find_runs(folder))
    start_watching(paths)
    for path in paths:
        row = look_at(path)
        if status in (None, row.status):
            yield row


def look_at(path: Path) -> Listed:
    """Summarizes one run, whatever state its files are in."""
    try:
        return _summarized(path)
    except Exception as error:  # of one run, which must not hide the others
        return Listed(path, "unreadable", bytes=size_on_disk(path), problem=why_unreadable(path, error))


def _summarized(path: Path) -> Listed:
    info, problems = read_fields(path)
    known: dict[str, Any] | None = info.get("settings")
    return Listed(
        path=path,
        status=status_of(path, info),
        step=info.get("step"),
        steps=info.get("steps"),
        started=started_at(path, info).isoformat(timespec="seconds"),
        bytes=size_on_disk(path),
        dataset=None if known is None else _word(known.get("dataset")),
        constraints=None if known is None else _word(known.get("constraints")),
        seed=info.get("seed"),
        health=complaints_of(info),
        warnings=warnings_of(info),
        problem=next(map(str, problems.values()), None),
        changes=changes_of(info),
    )


def status_of(path: Path, info: dict[str, Any], *, wait: bool = True) -> str:
    """The status in run.json, or "killed" if that is "running" and no process holds the run.

    Args:
        path: The run's directory.
        info: Its run.json.
        wait: Whether to find out about a process of another machine, as for `ganlab.runs.lock.holder`.
    """
    status = info.get("status", "None")  # some of the oldest runs have no status
    if status not in (*STATUSES, "None"):
        return "unreadable"
    try:
        return "killed" if status == "running" and holder(path, wait=wait) is None else status
    except OSError:
        return status


def started_at(path: Path, info: dict[str, Any]) -> datetime:
    """The time at which a run started; if that is not recorded, the time at which run.json was last written."""
    try:
        return datetime.fromisoformat(info["provenance"]["started"]).astimezone(UTC)
    except (KeyError, ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(min(max(os.lstat(path / INFO).st_mtime, 0), _LAST_SECOND), UTC)


def size_on_disk(folder: Path) -> int:
    """The size of the files below a folder in bytes; a link counts as itself, not as its target."""
    size = 0
    for place, _, files in walk(folder):
        for name in files:
            try:
                size += os.lstat(os.path.join(place, name)).st_size
            except OSError:  # removed meanwhile: the run may be training
                continue
    return size


def checkpoint_steps(path: Path) -> list[int]:
    """The steps of the complete checkpoints, in ascending order."""
    found = (item.parent.name.removeprefix("step-") for item in path.glob("checkpoints/step-*/manifest.json"))
    return sorted(int(step) for step in found if step.isascii() and step.isdigit() and len(step) < _STEP_DIGITS)


def checkpoints_gone(path: Path, info: dict[str, Any]) -> str:
    """A sentence on a run that had checkpoints and has none left; empty if there are some, or never were.

    Checkpoints that were damaged and put aside are still there. What no run.json records, as in the oldest runs, is
    taken from the status: a completed run had one.
    """
    if not info.get("checkpointed", info.get("status") == "completed") or any((path / "checkpoints").glob("*")):
        return ""
    status = line(status_of(path, info))
    return f"{line(path)} ({status}) has no checkpoints any more: they were removed, or left out of an archive."


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""
