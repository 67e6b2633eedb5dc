"""Formats quantities for tables and messages."""

from __future__ import annotations

import re

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


def in_time(seconds: float) -> str:
    """Formats a span of time in its largest unit: `42 s`, `3 min`, `5 h`, `12 d`."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return f"{max(0, int(seconds))} s"


def counted(count: int, noun: str) -> str:
    """Formats a number with its noun: `1 run`, `3 runs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
