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

# Bytes of a line, which is in memory whole: those of thousands of replicas are a hundredth of it.
LONGEST = 1 << 26

# What is written in place of floats that JSON has no word for.
NON_FINITE = ("NaN", "Infinity", "-Infinity")

# What `Line.parse` raises for a line that is not one of metrics.
NOT_METRICS = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True)
class Line:
    """A line that was written to its end.

    Attributes:
        number: From 1.
        start: The byte where it begins.
        text: All of it, with the newline.
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
        """How it begins, for a message."""
        return repr(self.text[:60].decode(errors="replace").strip())

    def parse(self) -> tuple[int, list[Record]]:
        """Its step and its metrics; raises one of `NOT_METRICS` where it has none."""
        row = json.loads(self.text)
        step = row["step"]
        if not _is_number(step, int) or not 0 <= step < 2**63 or len(self.text) > LONGEST:
            raise ValueError
        return step, [
            Record(step, tag, _value(entry["reduced"]), tuple(_value(value) for value in entry.get("replicas", ())))
            for tag, entry in row["metrics"].items()
        ]


def lines(path: Path) -> Iterator[Line]:
    """The lines of a file, none where there is none; a last one without a newline is left out.

    Of a line longer than `LONGEST` there are several parts, none of which is a line of metrics.

    Raises:
        RunError: It cannot be read, leads out of its folder, or is no regular file.
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
