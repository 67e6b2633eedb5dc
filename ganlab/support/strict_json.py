"""Reads untrusted JSON: within limits on depth and size of numbers that all its users can handle, and by a schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ganlab.errors import RunError
from ganlab.support.paths import read_inside
from ganlab.support.schema import InvalidError, Rule
from ganlab.support.terminal import line

# Levels of nested objects; ganlab writes a tenth of that.
_DEEPEST = 64
_NESTED = frozenset({dict, list})
# Digits of a whole number that still fits a float.
_LONGEST = 300


def read_json(folder: Path, name: str, schema: Rule, *, most: int, remedy: str) -> Any:
    """Reads a JSON file of a folder, which may come from a stranger.

    Args:
        folder: The folder.
        name: The file's name in it.
        schema: The rule that its content must keep.
        most: How many bytes it may have.
        remedy: What to do about an invalid one, a sentence.

    Raises:
        RunError: The file is not a regular file of the folder, is too large, is not JSON, or breaks the schema.
        OSError: It is missing or cannot be read.
    """
    try:
        content = parse_json(read_inside(folder, name, most=most).decode())
        schema.check(content)
    except InvalidError as error:
        raise RunError(f"{line(folder / name)}{':' if error.where else ''} {error}. {remedy}") from None
    except UnicodeDecodeError as error:
        raise RunError(f"{line(folder / name)} is not text in UTF-8 (at byte {error.start}). {remedy}") from None
    except ValueError as error:
        raise RunError(f"{line(folder / name)} is not JSON ({error}). {remedy}") from None
    return content


def parse_json(text: str | bytes) -> Any:
    """Parses a JSON text. A whole number of more than 300 digits becomes infinite, because no float can hold it.

    Raises:
        ValueError: The text is not JSON, is nested too deeply, or has a number of thousands of digits.
    """
    try:
        value = json.loads(text, parse_int=_whole)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    level = [[value]]
    for _ in range(_DEEPEST + 1):
        if not level:
            return value
        items = (held.values() if isinstance(held, dict) else held for held in level)
        level = [item for some in items for item in some if type(item) in _NESTED and item]
    raise ValueError(_TOO_DEEP)


_TOO_DEEP = "it is nested too deeply"


def _whole(digits: str) -> int | float:
    value = int(digits)
    return value if len(digits) <= _LONGEST else float(digits)
