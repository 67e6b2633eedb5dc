"""Simulates a loss of power on the files that a killed process left.

Killing a process loses nothing that it had written: the kernel still has it. A loss of power may lose everything that
was not followed by fsync. POSIX promises that a file's bytes are there after fsync of the file, and names in a folder
after fsync of the folder, and nothing else; so here

- of each file, bytes beyond what was there at its last fsync are cut off at a random length or read as zeros, and
- of each folder, what was done to its names since its last fsync (made, renamed, removed) is undone from a random point
  on. Real file systems are kinder: many keep the order of such operations over all folders.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from killing.faults import Preload


@dataclass
class Lost:
    """The losses.

    Attributes:
        torn: Files whose ends were lost, relative to the run.
        undone: Operations on names that were undone, in words.
    """

    torn: list[str] = field(default_factory=list)
    undone: list[str] = field(default_factory=list)


def lose_power(run: Path, preload: Preload, random: np.random.Generator) -> Lost:
    """Removes from a run's folder what a loss of power at the end of the logged process may remove."""
    operations, durable = _read(preload.log)
    lost = Lost()
    _undo(run, operations, preload.shadow, random, lost)
    for path in sorted(path for path in run.rglob("*") if path.is_file()):
        found = path.stat()
        safe = durable.get(found.st_ino, found.st_size)  # a file that the process never opened is unchanged
        if found.st_size > safe:
            _tear(path, int(random.integers(safe, found.st_size)), zeros=bool(random.integers(2)))
            lost.torn.append(str(path.relative_to(run)))
    return lost


def _read(log: Path) -> tuple[list[list[str]], dict[int, int]]:
    """Operations on names since their folder's last fsync, oldest first, and the durable size of each file."""
    operations: list[list[str] | None] = []
    pending: dict[str, list[int]] = defaultdict(list)
    durable: dict[int, int] = {}
    for line in log.read_text().splitlines() if log.exists() else ():
        what, *rest = line.split("\t")
        if what == "sync":
            durable[int(rest[0])] = int(rest[1])
        elif what == "open":
            durable[int(rest[0])] = min(int(rest[1]), durable.get(int(rest[0]), int(rest[1])))
        elif what == "syncdir":
            for index in pending.pop(rest[0], []):
                operations[index] = None
        elif what != "counted":
            folder = rest[2] if what == "rename" else rest[0]
            pending[folder].append(len(operations))
            operations.append([what, *rest])
    return [operation for operation in operations if operation], durable


def _undo(run: Path, operations: list[list[str]], shadow: Path, random: np.random.Generator, lost: Lost) -> None:
    by_folder: dict[str, list[int]] = defaultdict(list)
    for index, (what, *rest) in enumerate(operations):
        by_folder[rest[2] if what == "rename" else rest[0]].append(index)
    undone = {index for of in by_folder.values() for index in of[int(random.integers(len(of) + 1)) :]}
    again: dict[str, str] = {}  # folders that were removed have another inode when they are restored
    for index in sorted(undone, reverse=True):
        what, *rest = operations[index]
        folders = {str(path.stat().st_ino): path for path in (run, *run.rglob("*")) if path.is_dir()}
        folder = folders.get(again.get(rest[0], rest[0]))
        if what == "rename":
            into = folders.get(again.get(rest[2], rest[2]))
            said = _rename_back(folder, rest[1], into, rest[3], shadow / rest[4])
        elif folder is None:
            continue
        else:
            said = _undo_one(what, folder / rest[1], rest[2] if len(rest) > 2 else "", shadow, again)
        if said is not None:
            lost.undone.append(f"{what} {said.relative_to(run)}")


def _rename_back(folder: Path | None, old: str, into: Path | None, new: str, replaced: Path) -> Path | None:
    if into is None or not (into / new).exists():
        return None
    if folder is None:
        (into / new).unlink()
    else:
        (into / new).rename(folder / old)
    if replaced.is_file():
        os.link(replaced, into / new)
    return into / new


def _undo_one(what: str, path: Path, more: str, shadow: Path, again: dict[str, str]) -> Path | None:
    if what == "create" and path.is_file():
        path.unlink()
    elif what == "mkdir" and path.is_dir():
        shutil.rmtree(path)
    elif what == "unlink" and (shadow / more).is_file() and not path.exists():
        os.link(shadow / more, path)
    elif what == "rmdir" and not path.exists():
        path.mkdir()
        again[more] = str(path.stat().st_ino)
    else:
        return None
    return path


def _tear(path: Path, length: int, *, zeros: bool) -> None:
    size = path.stat().st_size
    os.truncate(path, length)
    if zeros:
        os.truncate(path, size)  # the part that was cut now reads as zeros
