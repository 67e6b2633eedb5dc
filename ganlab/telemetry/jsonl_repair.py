"""Repairs metrics.jsonl before a resumed run adds to it: drops rows to be written again, puts damage aside."""

from __future__ import annotations

import bisect
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ganlab.support.atomic import replacing
from ganlab.support.paths import open_inside
from ganlab.telemetry.jsonl_lines import rows

# The most lines that a complaint describes.
_NAMED = 3


@dataclass(frozen=True)
class Repaired:
    """The result of a repair.

    Attributes:
        rows: How many rows the file has now.
        complaint: A sentence about damage in the file; empty if there was none.
    """

    rows: int = 0
    complaint: str = ""


@dataclass(frozen=True)
class _Place:
    number: int
    start: int
    end: int
    step: int | None
    shown: str = ""


def repair(path: Path, *, truncate_after: int | None = None, expected: int | None = None) -> Repaired:
    """Drops a torn last line and, if asked, every line after a step. Either all of this happens or none of it.

    A line that is not a line of metrics, or whose step is out of order, is moved to a file beside this one; the rows
    around it stay.

    Args:
        path: The file; nothing happens if it does not exist.
        truncate_after: The last step to keep; None keeps all.
        expected: How many rows there were up to that step; None if nobody counted them.

    Raises:
        OSError: The file cannot be replaced.
        RunError: It cannot be read, or too much of it is not metrics.
    """
    if not path.exists():
        return Repaired(complaint=_complaint(path, [], [], 0, expected))
    places = [
        _Place(row.number, row.start, row.end, step, row.shown if step is None else "") for row, step, _ in rows(path)
    ]
    rising = set(_rising([place.step for place in places]))
    last = len(places)
    if truncate_after is not None:  # damaged lines after the first later row are dropped with it
        last = next((i for i in sorted(rising) if (places[i].step or 0) > truncate_after), last)
        last = 0 if truncate_after < 0 else last
    kept = [places[i] for i in sorted(rising) if i < last]
    wrong = [place for i, place in enumerate(places[:last]) if i not in rising]
    # A missing row may be one of those whose step looks later.
    aside = [*wrong, *places[last:]] if expected is not None and len(kept) < expected else wrong
    complaint = _complaint(path, wrong, aside, len(kept), expected)
    if aside:
        with _aside(path).open("ab") as damaged:
            _copy(path, damaged, aside)
            damaged.flush()
            os.fsync(damaged.fileno())
    if sum(place.end - place.start for place in kept) != path.stat().st_size:
        with replacing(path) as whole:
            _copy(path, whole, kept)
    return Repaired(len(kept), complaint)


def _rising(steps: Sequence[int | None]) -> list[int]:
    """The indices of the longest sequence of rising steps: a wrong digit excludes its own line and no other."""
    ends: list[int] = []  # of the best sequence of each length, the last step
    at: list[int] = []
    before: dict[int, int | None] = {}
    for i, step in enumerate(steps):
        if step is None:
            continue
        length = bisect.bisect_left(ends, step)
        before[i] = at[length - 1] if length else None
        ends[length : length + 1] = [step]
        at[length : length + 1] = [i]
    indices: list[int] = []
    last = at[-1] if at else None
    while last is not None:
        indices.append(last)
        last = before[last]
    return indices[::-1]


def _aside(path: Path) -> Path:
    return path.with_name(f"damaged-{path.name}")


def _complaint(path: Path, wrong: Sequence[_Place], aside: Sequence[_Place], kept: int, expected: int | None) -> str:
    missing = 0 if expected is None else max(0, expected - kept)
    if not wrong and not missing:
        return ""
    named = [
        f"line {place.number}, {place.shown}, is not a line of metrics"
        if place.step is None
        else f"line {place.number} has the step {place.step}, which is out of order"
        for place in wrong[:_NAMED]
    ]
    if len(wrong) > _NAMED:
        named.append(f"and {len(wrong) - _NAMED} more lines")
    said = [f"{path} is damaged: {'; '.join(named)}." if named else f"{path} is damaged: it lacks rows."]
    if aside:
        said.append(f"{len(aside)} {'line is' if len(aside) == 1 else 'lines are'} moved to {_aside(path).name}.")
    said.append(f"{kept} rows stay{f'; {missing} of the {expected} that were written are missing' if missing else ''}.")
    return " ".join(said)


def _copy(source: Path, target: IO[bytes], places: Sequence[_Place]) -> None:
    with open_inside(source.parent, source.name) as reading:
        for place in places:
            reading.seek(place.start)
            target.write(reading.read(place.end - place.start))
