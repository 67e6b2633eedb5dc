"""Reads run.json and other text files of a run's directory, which may come from a stranger."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ganlab.errors import GanlabError, RunError
from ganlab.runs.fields import MEASURED
from ganlab.support.paths import read_inside
from ganlab.support.strict_json import parse_json
from ganlab.support.terminal import line
from ganlab.telemetry.jsonl import NON_FINITE

INFO = "run.json"

# A hundred times a run.json with thousands of settings.
_LARGEST = 1 << 24


def read_info(folder: Path) -> dict[str, Any]:
    """The contents of a run's run.json.

    Raises:
        RunError: The file is missing, is not JSON, or does not hold an object.
    """
    path, text = line(folder / INFO), read_text(folder, INFO)
    try:
        info = parse_json(text)
    except ValueError as error:
        raise RunError(f"{path} is not JSON ({error}). Restore it, or remove the run.") from None
    if not isinstance(info, dict):
        raise RunError(f"{path} holds a {type(info).__name__}; it must hold an object of fields.")
    return {name: _numbers(value) if name in MEASURED else value for name, value in info.items()}


def why_unreadable(path: Path, error: Exception) -> str:
    """Returns a sentence on a run that cannot be read, whatever the error is: the other runs are shown beside it."""
    if isinstance(error, GanlabError):
        return " ".join(str(error).split())
    if isinstance(error, OSError):
        return f"{line(path)} cannot be read: {error.strerror or error}."
    return (
        f"{line(path)} cannot be read ({type(error).__name__}: {line(error)}). Please report this as a bug of ganlab."
    )


def limits_of(info: Mapping[str, Any], tag: str) -> tuple[float, float]:
    """The least and the largest value that a figure can have, by run.json; infinities where it knows none."""
    limits = info.get("limits")
    ends = limits.get(tag) if isinstance(limits, dict) else None
    if not isinstance(ends, list) or len(ends) != 2:
        return -math.inf, math.inf
    low, high = (end if isinstance(end, (int, float)) else None for end in ends)
    return -math.inf if low is None else low, math.inf if high is None else high


def read_text(folder: Path, name: str) -> str:
    """Reads a text file of a run.

    Raises:
        RunError: The file cannot be read, or is not UTF-8.
    """
    path = line(folder / name)
    try:
        return read_inside(folder, name, most=_LARGEST).decode()
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise RunError(f"{path} is not text in UTF-8 (at byte {error.start}). Restore it.") from None


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _numbers(item) for name, item in value.items()}
    return float(value) if value in NON_FINITE else value
