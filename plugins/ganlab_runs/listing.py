"""Lists the runs below a folder from their files alone: without TensorFlow, and without executing anything."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ganlab.runs import (
    Change,
    all_changes,
    complaints_of,
    find_runs,
    read_fields,
    size_on_disk,
    started_at,
    status_of,
    warnings_of,
    why_unreadable,
)


@dataclass(frozen=True)
class Listed:
    """A summary of one run.

    Attributes:
        path: Its directory.
        status: One of `STATUSES` of `ganlab.runs`: "killed" if run.json has "running" but no process trains the run,
            "unreadable" if run.json or its status cannot be read.
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
    # Locks are watched from the first look on, and waited for once all of them are.
    rows = [look_at(path, wait=False) for path in find_runs(folder)]
    for row in rows:
        if row.status == "running":
            row = replace(row, status=status_of(row.path, {"status": "running"}))
        if status in (None, row.status):
            yield row


def look_at(path: Path, *, wait: bool = True) -> Listed:
    """Summarizes one run, whatever state its files are in; `wait` is that of `status_of`."""
    try:
        return _summarized(path, wait)
    except Exception as error:  # of one run, which must not hide the others
        return Listed(path, "unreadable", bytes=size_on_disk(path), problem=why_unreadable(path, error))


def _summarized(path: Path, wait: bool) -> Listed:
    info, problems = read_fields(path)
    known: dict[str, Any] | None = info.get("settings")
    return Listed(
        path=path,
        status=status_of(path, info, wait=wait),
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
        changes=all_changes(info),
    )


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""
