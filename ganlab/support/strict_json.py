"""JSON that others wrote: parsed only as far as everything that uses it can go."""

from __future__ import annotations

import json
from typing import Any

# Folders of folders of fields: what ganlab writes is a tenth as deep.
_DEEPEST = 64
# Digits of a whole number that is a float, too.
_LONGEST = 300


def parse_json(text: str | bytes) -> Any:
    """What a JSON text says. A whole number of more than 300 digits is infinite: nothing can reckon with it.

    Args:
        text: It may be a stranger's.

    Raises:
        ValueError: It is not JSON, is nested too deeply, or has a number of thousands of digits.
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
