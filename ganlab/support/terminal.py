"""Makes untrusted text safe to print: terminals obey control characters, and readers trust line breaks."""

from __future__ import annotations


def line(text: object) -> str:
    r"""Returns the text as one line, with unprintable characters as escapes: `\x1b`, `\n`, `\u202e`.

    These include control characters, line breaks of all kinds, marks that change the direction of writing, and lone
    surrogates, which occur in file names that are not valid text.

    Args:
        text: Any object; it is converted by `str`.
    """
    text = str(text)
    return text if text.isprintable() else "".join(map(_escaped, text))


def lines(text: object) -> str:
    """Returns the text with its line breaks, each line escaped by `line`."""
    return "\n".join(map(line, str(text).split("\n")))


def _escaped(char: str) -> str:
    return char if char.isprintable() else repr(char)[1:-1]
