"""Formats quantities for tables and messages."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

_UNITS = ("B", "kB", "MB", "GB", "TB")


def in_bytes(count: int) -> str:
    """Formats a size: `999 B`, `1.2 MB`, `35 GB`."""
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit and value < 9.95 else f"{value:.0f} {_UNITS[unit]}"


def from_bytes(text: str) -> int | None:
    """Parses a size such as `200GB`, `1.5 kB` or a number of bytes; None if the text is not a size."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?) ?([kKMGT]?)B?", text.strip(), re.ASCII)
    return found and int(float(found[1]) * 1000 ** " KMGT".index(found[2].upper() or " "))


def in_time(seconds: float | None, *, units: int = 2) -> str:
    """Formats a span of time: `8.4 s`, `3 min 20 s`, `2 h 5 min`, `12 d 3 h`; a dash for None.

    Args:
        seconds: The time; a negative one counts as 0.
        units: 2, or 1 for the largest unit alone, rounded down: `42 s`, `3 min`.
    """
    if seconds is None:
        return "-"
    whole = int(max(0.0, seconds)) if units == 1 else round(max(0.0, seconds))
    if whole < 60:
        return f"{whole} s" if units == 1 else f"{max(0.0, seconds):.1f} s"
    counts = zip(
        (whole // 86400, whole // 3600 % 24, whole // 60 % 60, whole % 60), ("d", "h", "min", "s"), strict=True
    )
    parts = list(itertools.dropwhile(lambda part: not part[0], counts))
    return " ".join(f"{count} {unit}" for count, unit in parts[:units])


def counted(count: int, noun: str) -> str:
    """Formats a number with its noun: `1 run`, `3 runs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(names: Sequence[str], most: int = 3) -> str:
    """Formats a list that may be long: `a, b and 3 more` of five names, of which two may be shown."""
    left = len(names) - most
    return ", ".join(names[:most]) + (f" and {left} more" if left > 0 else "")
