"""Messages on the screen: shortened, and without control characters that a terminal would obey."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import click

from ganlab.support.terminal import line, lines

# The most characters of a message's line, and how many of them are its end: a value may be a whole file.
_LONGEST, _END = 1500, 300


def message_of(error: Exception) -> str:
    """An error's message with long lines shortened and control characters escaped."""
    return "\n".join(map(_shortened, lines(error).split("\n")))


def say(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Prints text, with control characters escaped.

    Args:
        text: Its line ends are kept: pass untrusted parts of it through `terminal.line` first.
        err: Whether to print on standard error.
        nl: Whether to end with a newline.
    """
    click.echo(lines(text), err=err, nl=nl)


def say_json(data: object) -> None:
    """Prints data as JSON; what JSON cannot represent is printed as Python's repr."""
    from ganlab.telemetry.jsonl import to_json

    say(json.dumps(to_json(data), indent=2, default=repr))


def warn(text: str) -> None:
    """Prints a warning on standard error."""
    say(f"Warning: {one_line(text)}", err=True)


def of_last_metrics(info: Mapping[str, Any]) -> str:
    """The title of the last metrics in run.json, with the step of their row if the run has gone further since."""
    at = info.get("metrics_step")
    return f"Last metrics, at step {at}" if at not in (None, info.get("step")) else "Last metrics"


def confirm(question: str) -> bool:
    """Asks for yes or no at the terminal."""
    return click.confirm(line(question))


def one_line(text: str) -> str:
    """A text as one line, shortened where it is long, with control characters escaped."""
    return _shortened(line(text))


def take_any_name() -> None:
    """Lets file names that are not text pass through standard output as raw bytes."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            is_utf8 = (stream.encoding or "").lower().replace("-", "") == "utf8"
            stream.reconfigure(errors="surrogateescape" if is_utf8 else "backslashreplace")


def warn_plainly() -> None:
    """Shows warnings of components as a sentence, without the line of code that issued them."""
    usual = warnings.formatwarning

    def plain(message: Any, category: type[Warning], *where: Any, **more: Any) -> str:
        if category is not UserWarning:
            return usual(message, category, *where, **more)
        return f"Warning: {message_of(message)}\n"

    warnings.formatwarning = plain


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - _END]} [... {len(text) - _LONGEST} letters ...] {text[-_END:]}"
