"""Reads run.json and other text files of a run's directory, which may come from a stranger."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ganlab.errors import GanlabError, RunError
from ganlab.support.paths import read_inside
from ganlab.support.schema import (
    FIGURE,
    FLAG,
    NON_FINITE,
    PATH,
    SCALAR,
    TEXT,
    WORD,
    InvalidError,
    Rule,
    fields,
    items,
    null_or,
    number,
    table,
    whole,
)
from ganlab.support.strict_json import read_json
from ganlab.support.terminal import line

INFO = "run.json"

# A hundred times a run.json with thousands of settings.
_LARGEST = 1 << 24

# Seconds, some thousand years: no run took longer.
_ETERNITY = 1e11

# Numbers in a sample: a picture of 4096 x 4096 in colour has fewer.
_MOST_VALUES = 1 << 26

# The parts of run.json that hold measured numbers.
_MEASURED = ("metrics", "evaluation", "diagnostics")

_REMEDY = "Restore the file, or remove the run."
_STEP = whole()
_SECONDS = number(0, _ETERNITY).called("a number of seconds")
_TEXTS = items(TEXT)
_ENDS = Rule("a list of two numbers or nulls", lambda value: isinstance(value, list) and _are_ends(value))
_DIRECTION = Rule('"max" or "min"', lambda value: value in ("max", "min"))
_SIZE = Rule(  # the axes first, because the product takes the square of their number
    f"a shape of at most 32 axes and {_MOST_VALUES} values",
    lambda value: len(value) <= 32 and math.prod(value) <= _MOST_VALUES,
)
_SHAPE = Rule(
    "a list of whole numbers of at least 1",
    lambda value: isinstance(value, list) and bool(value) and all(type(size) is int and size > 0 for size in value),
    lambda value: [("", value, _SIZE)],
)
_ORIGINS = {"data": table(), "code": table(table(TEXT)), "environment": table(), "environment_changes": _TEXTS}
_PROVENANCE: dict[str, Rule] = {
    **dict.fromkeys(("started", "python", "host", "platform"), TEXT),
    **dict.fromkeys(("argv", "devices"), _TEXTS),
    "git": null_or(fields({}, {"commit": TEXT, "dirty": FLAG})),
    "packages": table(TEXT),
    "plugins": table(fields({}, dict.fromkeys(("distribution", "version", "status", "content"), null_or(TEXT)))),
    **_ORIGINS,
}
_FIELDS: dict[str, Rule] = {
    **dict.fromkeys(("step", "steps", "seed", "replicas"), _STEP),
    **dict.fromkeys(("status", "strategy"), WORD),
    **dict.fromkeys(("chief", "checkpointed"), FLAG),
    **dict.fromkeys(("warnings", "health", "compiled"), _TEXTS),
    **dict.fromkeys(("error", "signal"), null_or(TEXT)),
    **dict.fromkeys(_MEASURED, table(FIGURE)),
    "settings": table(SCALAR),
    **dict.fromkeys(("metrics_step", "diverged_at"), null_or(_STEP)),
    "limits": table(_ENDS),
    "better": table(_DIRECTION),
    "wall_seconds": _SECONDS,
    "timed_from": null_or(fields({"step": _STEP, "seconds": _SECONDS})),
    "best": null_or(fields({"metric": TEXT, "step": _STEP, "value": FIGURE})),
    "sample_shape": _SHAPE,
    "label_frequencies": Rule(
        "null, or a list of a number of at least 0 for each class",
        lambda value: value is None or _are_frequencies(value),
    ),
    "class_names": _TEXTS,
    "given": table(_SHAPE),
    "provenance": fields({}, _PROVENANCE),
    "resumed": items(fields({"step": _STEP}, {"changes": _TEXTS, "extends": null_or(_STEP), **_PROVENANCE})),
    "forked_from": fields({"run": PATH, "step": _STEP}, {"settings": table()}),
    "started_from": fields(
        {"run": PATH, "step": _STEP}, dict.fromkeys(("taken", "missing", "other_shape", "left"), _TEXTS)
    ),
}


def read_info(folder: Path) -> dict[str, Any]:
    """The fields of a run's run.json, without those that are invalid.

    Raises:
        RunError: The file is missing, is not JSON, or does not hold an object.
    """
    return read_fields(folder)[0]


def read_fields(folder: Path) -> tuple[dict[str, Any], dict[str, RunError]]:
    """The valid fields of a run's run.json, and the error for each invalid one.

    Raises:
        RunError: The file is missing, is not JSON, or does not hold an object.
    """
    try:
        content = read_json(folder, INFO, table(), most=_LARGEST, remedy=_REMEDY)
    except OSError as error:
        raise RunError(f"{line(folder / INFO)} cannot be read: {error.strerror}.") from None
    fields: dict[str, Any] = {}
    problems: dict[str, RunError] = {}
    for name, value in content.items():
        try:
            if name in _FIELDS:
                _FIELDS[name].check(value)
        except InvalidError as error:
            problems[name] = RunError(f"{line(folder / INFO)}: {error.within(name)}. {_REMEDY}")
        else:
            fields[name] = {tag: _number(item) for tag, item in value.items()} if name in _MEASURED else value
    return fields, problems


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
    low, high = info.get("limits", {}).get(tag, (None, None))
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


def _number(value: Any) -> Any:
    return float(value) if value in NON_FINITE else value


def _are_frequencies(value: Any) -> bool:
    numbers = isinstance(value, list) and all(type(item) in (int, float) and item >= 0 for item in value)
    return numbers and 0 < sum(value) < math.inf


def _are_ends(value: list[Any]) -> bool:
    return len(value) == 2 and all(end is None or (type(end) in (int, float) and math.isfinite(end)) for end in value)
