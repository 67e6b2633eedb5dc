"""Reads metrics.jsonl: every reader takes its lines from here, as bytes, as records, or as a few of its metrics."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ganlab.errors import RunError
from ganlab.interfaces.record import Record
from ganlab.support.paths import open_inside
from ganlab.support.schema import NON_FINITE
from ganlab.support.terminal import line

# The most bytes of a line, because a line is in memory whole; those of thousands of replicas have a hundredth of it.
LONGEST = 1 << 26

# The errors that `Line.parse` raises for a line that is not a line of metrics.
NOT_METRICS = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)

# How ganlab begins and ends a line, and a metric in it. Other layouts are read, too, but slowly.
_BEGINNING, _ENDING = re.compile(rb'\{"step": (\d{1,18}), "metrics": \{"'), b"]}}}\n"
_ENTRY = b': {"reduced": '
_TAG = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:\s*\{\s*"(?:reduced|replicas)"')


@dataclass(frozen=True)
class Line:
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
        begun = _BEGINNING.match(self.text)
        if not begun or not self.text.endswith(_ENDING):
            return self._parsed(tags)
        step, found = int(begun[1]), []
        for tag in tags:
            name = _quoted(tag)
            at = self.text.find(name)
            if at < 0:
                continue
            end = at + len(name)
            # The name may also end that of another metric, with a quotation mark in it, or be there twice.
            escaped, twice = self.text[at - 1 : at] == b"\\", self.text.find(name, end) >= 0
            if escaped or twice or not self.text.startswith(_ENTRY, end):
                return self._parsed(tags)
            entry = self.text[end + len(b": ") : self.text.index(b"}", end) + 1]
            found.append(_record(step, tag, json.loads(entry)))
        return step, found

    def tags(self) -> set[bytes]:
        """The names of its metrics, as JSON without quotation marks."""
        return set(_TAG.findall(self.text))

    def _parsed(self, tags: Collection[str]) -> tuple[int, list[Record]]:
        step, records = self.parse()
        return step, [record for record in records if record.tag in tags]


def lines(path: Path) -> Iterator[Line]:
    """The lines of a file, or none if it does not exist; a last line without a newline is left out.

    A line longer than `LONGEST` comes in several parts, none of which is a line of metrics.

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


def lines_of(file: IO[bytes], start: int = 0) -> Iterator[Line]:
    """The lines of an open file from a byte on, like `lines`; they are numbered from 1."""
    file.seek(start)
    for number, text in enumerate(iter(lambda: file.readline(LONGEST + 1), b""), start=1):
        if not text.endswith(b"\n") and len(text) <= LONGEST:
            return
        yield Line(number, start, text)
        start += len(text)


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
