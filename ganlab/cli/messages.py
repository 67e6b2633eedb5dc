"""What goes to the screen from files: never longer than one reads, never what a terminal would obey."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import click

from ganlab.support.terminal import line, lines

# Letters of a line of a message, and of its end where it is longer: a value may be a file's whole content.
_LONGEST, _END = 1500, 300


def told(error: Exception) -> str:
    """An error's message with lines of a bearable length, and with control characters as escapes."""
    return "\n".join(map(_shortened, lines(error).split("\n")))


def say(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Prints text, with control characters as escapes.

    Args:
        text: Its line ends stay: what is a stranger's in it passes through `terminal.line` before.
        err: On standard error.
        nl: With a line end behind it.
    """
    click.echo(lines(text), err=err, nl=nl)


def confirm(question: str) -> bool:
    """Asks for yes or no at the terminal."""
    return click.confirm(line(question))


def told_line(text: str) -> str:
    """A text as one line of a bearable length, with control characters as escapes."""
    return _shortened(line(text))


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


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - _END]} [... {len(text) - _LONGEST} letters ...] {text[-_END:]}"
