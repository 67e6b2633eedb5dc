"""The state of a run from its files alone: its status, start, size and checkpoints. Nothing is executed."""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ganlab.runs.info import INFO
from ganlab.runs.lock import holder
from ganlab.support.terminal import line

# Digits of the step in a checkpoint's name.
_STEP_DIGITS = 19
_LAST_SECOND = 253402300799  # of the year 9999, the last one that datetime has

# The statuses that run.json may hold, followed by those that only inspecting the run can show.
STATUSES = ("running", "completed", "interrupted", "failed", "diverged", "killed", "unreadable")

# How the error of a run that diverged ends, except in `ganlab runs show` itself.
SHOWN_BY = " 'ganlab runs show RUN' shows what grew."


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
    size, left = 0, [os.fspath(folder)]
    while left:
        with contextlib.suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)
                    continue
                with contextlib.suppress(OSError):  # removed meanwhile: the run may be training
                    size += entry.stat(follow_symlinks=False).st_size
    return size


def checkpoint_steps(path: Path) -> list[int]:
    """The steps of the complete checkpoints, in ascending order."""
    steps = (item.parent.name.removeprefix("step-") for item in path.glob("checkpoints/step-*/manifest.json"))
    return sorted(int(step) for step in steps if step.isascii() and step.isdigit() and len(step) < _STEP_DIGITS)


def checkpoints_gone(path: Path, info: dict[str, Any]) -> str:
    """A sentence on a run that had checkpoints and has none left; empty if there are some, or never were.

    Checkpoints that were damaged and put aside are still there. What no run.json records, as in the oldest runs, is
    taken from the status: a completed run had one.
    """
    if not info.get("checkpointed", info.get("status") == "completed") or any((path / "checkpoints").glob("*")):
        return ""
    status = line(status_of(path, info))
    return f"{line(path)} ({status}) has no checkpoints any more: they were removed, or left out of an archive."
