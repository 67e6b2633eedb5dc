"""The lines of metrics.jsonl, as bytes and as records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ganlab.errors import RunError
from ganlab.interfaces.record import Record
from ganlab.support.paths import open_inside
from ganlab.support.terminal import line

# The most bytes of a line, because a line is in memory whole; those of thousands of replicas have a hundredth of it.
LONGEST = 1 << 26

# The strings that stand for floats which JSON cannot express.
NON_FINITE = ("NaN", "Infinity", "-Infinity")

# The errors that `Line.parse` raises for a line that is not a line of metrics.
NOT_METRICS = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)


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
        return step, [
            Record(step, tag, _value(entry["reduced"]), tuple(_value(value) for value in entry.get("replicas", ())))
            for tag, entry in row["metrics"].items()
        ]


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
    start = 0
    with file:
        for number, text in enumerate(iter(lambda: file.readline(LONGEST + 1), b""), start=1):
            if not text.endswith(b"\n") and len(text) <= LONGEST:
                return
            yield Line(number, start, text)
            start += len(text)


def _value(value: Any) -> float:
    if _is_number(value, (int, float)) or value in NON_FINITE:
        return float(value)
    raise TypeError


def _is_number(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
