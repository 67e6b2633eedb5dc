"""What goes to the screen from files: never longer than one reads, never what a terminal would obey."""

from __future__ import annotations

import sys
import warnings
from typing import Any

# Letters of a line of a message, and of its end where it is longer: a value may be a file's whole content.
_LONGEST, _END = 1500, 300


def told(error: Exception) -> str:
    """An error's message with lines of a bearable length, and with control characters as escapes."""
    return "\n".join(_shortened(_escaped(line)) for line in str(error).split("\n"))


def take_any_name() -> None:
    """Lets names of files that are no text through standard output, as the bytes that they are."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            is_utf8 = (stream.encoding or "").lower().replace("-", "") == "utf8"
            stream.reconfigure(errors="surrogateescape" if is_utf8 else "backslashreplace")


def warn_plainly() -> None:
    """Has what components warn of shown as a sentence, without the line of code that it came from."""
    usual = warnings.formatwarning

    def plain(message: Any, category: type[Warning], *where: Any, **more: Any) -> str:
        if category is not UserWarning:
            return usual(message, category, *where, **more)
        return f"Warning: {told(message)}\n"

    warnings.formatwarning = plain


def _escaped(line: str) -> str:
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)


def _shortened(line: str) -> str:
    if len(line) <= _LONGEST:
        return line
    return f"{line[: _LONGEST - _END]} [... {len(line) - _LONGEST} letters ...] {line[-_END:]}"
