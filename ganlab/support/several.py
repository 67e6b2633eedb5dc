"""Arguments of public functions: one value alone is taken as several of one, and a value of another type refused."""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ganlab.errors import ConfigError
from ganlab.support.paths import local


def texts(given: str | Iterable[str], name: str) -> list[str]:
    """The texts that an argument of this name was given; a single string becomes a one-item list."""
    return _several(given, name, str, "a text, or a list of texts")


def paths(
    given: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    name: str,
    rule: str = "a path, or a list of paths",
) -> list[str]:
    """The paths that an argument was given; as `texts`."""
    return [os.fspath(local(path, name)) for path in _several(given, name, (str, os.PathLike), rule)]


def path(given: Any, name: str) -> Path:
    """The path that an argument was given; a URL, too, is refused."""
    if not isinstance(given, (str, os.PathLike)):
        raise ConfigError(f"{name} = {given!r:.80} must be a path.")
    return local(given, name)


def whole_number(given: Any, name: str) -> int:
    """The whole number that an argument was given; as `path`."""
    if not isinstance(given, numbers.Integral) or isinstance(given, bool):
        raise ConfigError(f"{name} = {given!r:.80} must be a whole number.")
    return int(given)


def count(given: Any, name: str) -> int:
    """The whole number of at least 1 that an argument was given; as `path`."""
    if whole_number(given, name) < 1:
        raise ConfigError(f"{name} = {given!r} must be at least 1.")
    return int(given)


def count_or_none(given: Any, name: str) -> int | None:
    """The whole number of at least 1 that an argument was given, or None; as `path`."""
    return None if given is None else count(given, name)


def seconds_or_none(given: Any, name: str) -> float | None:
    """The time in seconds that an argument was given, or None; as `path`."""
    if given is not None and not (isinstance(given, numbers.Real) and float(given) > 0):
        raise ConfigError(f"{name} = {given!r:.80} must be a number above 0.")
    return None if given is None else float(given)


def whole_numbers(given: int | Iterable[int], name: str) -> list[int]:
    """The whole numbers that an argument was given; as `texts`."""
    found = _several(given, name, numbers.Integral, "a whole number, or a list of them")
    return [whole_number(number, name) for number in found]


def values(given: Any) -> list[Any]:
    """The values of a list or another iterable, and a value alone, a text too, as a list of one."""
    return [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)


def _several(given: Any, name: str, kind: Any, rule: str) -> list[Any]:
    found = values(given)
    if not all(isinstance(value, kind) for value in found):
        raise ConfigError(f"{name} = {given!r:.80} must be {rule}.")
    return found
