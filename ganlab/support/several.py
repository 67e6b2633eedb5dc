"""Arguments of functions that take several values, such as paths: one value alone is taken as several of one."""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterable
from typing import Any

from ganlab.errors import ConfigError
from ganlab.support.paths import local


def texts(given: str | Iterable[str], name: str) -> list[str]:
    """The texts that an argument was given; a text alone is not taken for its letters.

    Args:
        given: A text or several.
        name: The argument, for the message.

    Raises:
        ConfigError: It is something else.
    """
    return _several(given, name, str, "a text, or a list of texts")


def paths(given: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], name: str) -> list[str | os.PathLike[str]]:
    """The paths that an argument was given; as `texts`."""
    found = _several(given, name, (str, os.PathLike), "a path, or a list of paths")
    for path in found:
        local(path, name)
    return found


def whole_numbers(given: int | Iterable[int], name: str) -> list[int]:
    """The whole numbers that an argument was given; as `texts`."""
    return [int(number) for number in _several(given, name, numbers.Integral, "a whole number, or a list of them")]


def values(given: Any) -> list[Any]:
    """The values of a list or another iterable, and a value alone, a text too, as a list of one."""
    return [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)


def _several(given: Any, name: str, kind: Any, rule: str) -> list[Any]:
    found = values(given)
    if not all(isinstance(value, kind) for value in found):
        raise ConfigError(f"{name} = {given!r} must be {rule}.")
    return found
