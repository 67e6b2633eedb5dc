"""Text that others wrote, made safe to show: a terminal obeys control characters, and a reader believes line ends."""

from __future__ import annotations


def line(text: object) -> str:
    r"""The text as one line: what is not printable is written as an escape, such as `\x1b`, `\n` or `\u202e`.

    That takes in control characters, line ends of all kinds, marks that turn the direction of writing, and halves of
    surrogate pairs, which names of files that are no text have.

    Args:
        text: Anything; what `str` makes of it counts.
    """
    text = str(text)
    return text if text.isprintable() else "".join(map(_escaped, text))


def lines(text: object) -> str:
    """The text with its line ends, each line of it as `line` has it."""
    return "\n".join(map(line, str(text).split("\n")))


def _escaped(char: str) -> str:
    return char if char.isprintable() else repr(char)[1:-1]
