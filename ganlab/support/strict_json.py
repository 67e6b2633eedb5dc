"""Parses untrusted JSON, within limits on depth and size of numbers that all its users can handle."""

from __future__ import annotations

import json
from typing import Any

# Levels of nested objects; ganlab writes a tenth of that.
_DEEPEST = 64
# Digits of a whole number that still fits a float.
_LONGEST = 300


def parse_json(text: str | bytes) -> Any:
    """Parses a JSON text. A whole number of more than 300 digits becomes infinite, because no float can hold it.

    Args:
        text: The text, possibly from a stranger.

    Raises:
        ValueError: The text is not JSON, is nested too deeply, or has a number of thousands of digits.
    """
    try:
        value = json.loads(text, parse_int=_whole)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    level = [value]
    for _ in range(_DEEPEST):
        level = [item for held in level for item in _items(held)]
        if not level:
            return value
    raise ValueError(_TOO_DEEP)


_TOO_DEEP = "it is nested too deeply"


def _whole(digits: str) -> int | float:
    value = int(digits)
    return value if len(digits) <= _LONGEST else float(digits)


def _items(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
