"""Reads metrics.jsonl: every reader takes its lines from here, as bytes, as records, or as a few of its metrics."""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from ganlab.errors import RunError
from ganlab.interfaces.record import Record
from ganlab.support.paths import open_inside
from ganlab.support.schema import NON_FINITE
from ganlab.support.terminal import line

# The most bytes of a line, because a line is in memory whole; those of a thousand replicas have a tenth of it.
LONGEST = 1 << 24

# The most bytes of lines that are not lines of metrics, each taken as somewhat longer because it takes as long. Holes
# of a sparse file are such lines: so the time of reading depends on what a file really holds.
MOST_DAMAGED, _LINE = 1 << 26, 1 << 12

# The errors that `Line.parse` raises for a line that is not a line of metrics.
NOT_METRICS = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)

# How ganlab begins and ends a line, and a metric in it. Other layouts are read, too, but slowly.
_BEGINNING, _ENDING = re.compile(rb'\{"step": (\d{1,18}), "metrics": \{"'), b"]}}}\n"
_ENTRY = b': {"reduced": '
# Every string, whole or cut, so that no byte is looked at from two places; then what makes it the name of a metric.
_STRING = re.compile(rb'"((?:[^"\\]++|\\.)*+)"?(\s*+:\s*+\{\s*+"(?:reduced|replicas)")?')


class Line(NamedTuple):
    """A complete line.

    Attributes:
        number: Its number, from 1.
        start: The byte where it begins.
        text: Its bytes, with the newline.
    """

    number: int
    start: int
    text: bytes

    @property
    def end(self) -> int:
        """The byte after it."""
        return self.start + len(self.text)

    @property
    def cost(self) -> int:
        """The share of `MOST_DAMAGED` that it takes if it is not a line of metrics."""
        return len(self.text) + _LINE

    @property
    def shown(self) -> str:
        """The beginning of the line, for a message."""
        return repr(self.text[:60].decode(errors="replace").strip())

    def parse(self) -> tuple[int, list[Record]]:
        """Its step and its metrics; raises one of `NOT_METRICS` if it has none."""
        row = json.loads(self.text)
        step = row["step"]
        if not _is_number(step, int) or not 0 <= step < 2**63 or len(self.text) > LONGEST:
            raise ValueError
        return step, [_record(step, tag, entry) for tag, entry in row["metrics"].items()]

    def pick(self, tags: Collection[str]) -> tuple[int, list[Record]]:
        """Its step and some of its metrics, like `parse` but without parsing the others."""
        text = self.text
        begun = _BEGINNING.match(text)
        # Without a backslash, and in ASCII, no name is spelled in two ways or ends in that of another.
        plain = text.isascii() and b"\\" not in text
        if not begun or not plain or not text.endswith(_ENDING):
            return self._parsed(tags)
        step, records = int(begun[1]), []
        for tag in tags:
            name = _quoted(tag)
            at = text.find(name)
            if at < 0:
                continue
            end = at + len(name)
            if text.find(name, end) >= 0 or not text.startswith(_ENTRY, end):  # it may be there twice
                return self._parsed(tags)
            entry = text[end + len(b": ") : text.index(b"}", end) + 1]
            records.append(_record(step, tag, json.loads(entry)))
        return step, records

    def _parsed(self, tags: Collection[str]) -> tuple[int, list[Record]]:
        step, records = self.parse()
        return step, [record for record in records if record.tag in tags]


def row_of(text: bytes, tags: Collection[str]) -> tuple[int, list[Record]] | None:
    """The step and some of the metrics of a line, with its newline; None if it is not a line of metrics."""
    try:
        return Line(0, 0, text).pick(tags)
    except NOT_METRICS:
        return None


# A line, its step and its metrics; the step is None if it is not a line of metrics.
Row = tuple[Line, int | None, list[Record]]


def lines(path: Path) -> Iterator[Line]:
    """The lines of a file, like `lines_of`, or none if it does not exist.

    Raises:
        RunError: It cannot be read, leads out of its folder, or is not a regular file.
    """
    try:
        file = open_inside(path.parent, path.name)
    except FileNotFoundError:
        return
    except OSError as error:
        raise RunError(f"{line(path)} cannot be read: {error.strerror}.") from None
    with file:
        yield from lines_of(file)


def rows(path: Path, tags: Collection[str] | None = None) -> Iterator[Row]:
    """The rows of a file, like `rows_of`, or none if it does not exist.

    Raises:
        RunError: As for `lines`, or too much of it is not metrics.
    """
    yield from rows_of(lines(path), path, tags)


def lines_of(file: IO[bytes], start: int = 0) -> Iterator[Line]:
    """The lines of an open file from a byte on, numbered from 1; a last line without a newline is left out.

    A line longer than `LONGEST` comes in several parts of one number, none of which is a line of metrics.
    """
    file.seek(start)
    number = 1
    while text := file.readline(LONGEST + 1):
        ends = text.endswith(b"\n")
        if not ends and len(text) <= LONGEST:
            return
        yield Line(number, start, text)
        start, number = start + len(text), number + ends


def rows_of(read: Iterable[Line], path: Path, tags: Collection[str] | None = None) -> Iterator[Row]:
    """Parses lines, up to so much damage that it takes bounded time.

    Args:
        read: The lines, from `lines_of`.
        path: The file, for messages.
        tags: The metrics to read, which is quicker than reading all.

    Raises:
        RunError: Too many lines are not lines of metrics, or too long ones.
    """
    room = MOST_DAMAGED
    for row in read:
        try:
            yield row, *(row.parse() if tags is None else row.pick(tags))
        except NOT_METRICS:
            room -= row.cost
            if room < 0:
                raise too_damaged(path) from None
            yield row, None, []


def too_damaged(path: Path) -> RunError:
    """Returns the error for a file whose damaged lines cost more than `MOST_DAMAGED`."""
    return RunError(
        f"{line(path)} holds more than {MOST_DAMAGED >> 20} MiB or {MOST_DAMAGED // _LINE} lines that are not metrics: "
        "ganlab did not write them. Restore the file, or remove it and lose the run's rows."
    )


def tags_in(text: bytes) -> set[str]:
    """The names of the metrics in a line, found without parsing it."""
    names = set()
    for name, is_tag in set(_STRING.findall(text)):
        if is_tag:
            with contextlib.suppress(ValueError):  # a part of an invalid line
                names.add(str(json.loads(b'"' + name + b'"')))
    return names


@functools.lru_cache(maxsize=1024)
def _quoted(tag: str) -> bytes:
    return json.dumps(tag).encode()


def _record(step: int, tag: str, entry: Any) -> Record:
    return Record(step, tag, _value(entry["reduced"]), tuple(_value(value) for value in entry.get("replicas", ())))


def _value(value: Any) -> float:
    if _is_number(value, (int, float)) or value in NON_FINITE:
        return float(value)
    raise TypeError


def _is_number(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
