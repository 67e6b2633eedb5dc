"""Quantities and strangers' text in words, for tables and messages."""

from __future__ import annotations

_UNITS = ("B", "kB", "MB", "GB", "TB")


def in_bytes(count: int) -> str:
    """A size: `999 B`, `1.2 MB`, `35 GB`."""
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit and value < 9.95 else f"{value:.0f} {_UNITS[unit]}"


def in_time(seconds: float) -> str:
    """A span of time by its largest unit: `42 s`, `3 min`, `5 h`, `12 d`."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return f"{max(0, int(seconds))} s"


def counted(count: int, noun: str) -> str:
    """`1 run`, `3 runs`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def plain(value: object) -> str:
    """Text of a file that may be a stranger's, without the characters that a terminal would obey."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in str(value))
