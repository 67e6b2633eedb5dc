"""Reference results beside which a benchmark is shown, if they were made with the same suite and budget."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ganlab.benchmarking.results import DONE, FAILED, FORMAT, NONE, PARTIAL, PENDING, REFUSED
from ganlab.benchmarking.suite import shipped_suites
from ganlab.config.files import shown
from ganlab.errors import ConfigError, RunError
from ganlab.support.paths import local, open_inside
from ganlab.support.strict_json import parse_json
from ganlab.support.terminal import line

NO_REFERENCE = "none"
_STATUSES = (DONE, PARTIAL, FAILED, REFUSED, PENDING, NONE)
_LARGEST = 1 << 26


def reference_files(against: Sequence[str], suite: str) -> list[Path]:
    """The files of reference results.

    Args:
        against: As on the command line: paths, or `none`; empty for the shipped results of the suite, if there are any.
        suite: The suite's name.

    Raises:
        ConfigError: `none` is given beside a file.
    """
    if NO_REFERENCE in against:
        if len(against) > 1:
            raise ConfigError("--against none excludes other files. Leave out one or the other.")
        return []
    if against:
        return [local(file, "against") for file in against]
    path = shipped_suites().get(suite)
    return [shipped] if path is not None and (shipped := path.with_suffix(".json")).is_file() else []


def read_reference(path: Path) -> dict[str, Any]:
    """Reads the results of another benchmark, perhaps a stranger's.

    Raises:
        ConfigError: They are not results of a benchmark.
    """
    try:
        real = path.resolve()
        with open_inside(real.parent, real.name) as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise ValueError("it is larger than 64 MiB")
        found = parse_json(data)
    except (RunError, OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(
            f"--against {shown(path)} cannot be read: {line(reason)}. Give the results.json of a benchmark."
        ) from None
    for problem in _problems(found):
        raise ConfigError(
            f"--against {shown(path)}: {problem}. Give the results.json of a benchmark, as 'ganlab benchmark' wrote it."
        )
    checked: dict[str, Any] = found
    return checked


def held_against(results: Mapping[str, Any], reference: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """A reference as it stands in results: its constraints, and warnings of what differs.

    Args:
        results: The results that it is shown beside; of them only `suite`, `budget` and `versions` are read.
        reference: The reference.
        path: Its file.

    Raises:
        ConfigError: It was made with another suite or another budget.
    """
    for what, mine, theirs in (
        ("suite", results["suite"]["hash"], reference["suite"]["hash"]),
        ("budget", results["budget"], reference["budget"]),
    ):
        if mine != theirs:
            which = f" ({line(theirs)} instead of {line(mine)})" if isinstance(theirs, str) else ""
            raise ConfigError(
                f"--against {shown(path)} was made with another {what}{which}, so that its numbers cannot be compared "
                f"with these. Use the same {what}, or leave the file out: --against none."
            )
    mine, theirs = results["versions"], reference["versions"]
    differing = [
        f"{name} {theirs.get(name, 'missing')} instead of {mine.get(name, 'missing')}"
        for name in sorted({*mine, *theirs})
        if mine.get(name) != theirs.get(name)
    ]
    warning = f"{path.name} was made with other versions, which may change its numbers: {', '.join(differing)}."
    return {
        "file": path.name,
        "date": reference["date"],
        "versions": theirs,
        "warnings": [warning] if differing else [],
        "constraints": reference["constraints"],
    }


def _problems(found: Any) -> Iterator[str]:
    """The problems of results, the first first."""
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        yield f"it is not in format {FORMAT} of a benchmark's results"
        return
    rules = {"suite": dict, "budget": dict, "versions": dict, "constraints": dict, "date": str}
    for key, kind in rules.items():
        if not isinstance(found.get(key), kind):
            yield f"{key} is missing or of a wrong type"
            return
    if not isinstance(found["suite"].get("hash"), str):
        yield "suite.hash is missing or not a text"
    if not all(isinstance(version, str) for version in found["versions"].values()):
        yield "versions must be texts"
    for name, constraint in found["constraints"].items():
        yield from (f"constraints.{line(name)[:60]}: {problem}" for problem in _constraint_problems(constraint))


def _constraint_problems(found: Any) -> Iterator[str]:
    if not isinstance(found, dict) or not isinstance(found.get("tasks"), dict):
        yield "tasks is missing"
        return
    if not isinstance(found.get("origin"), str):
        yield "origin must be a text"
    if not (found.get("ratio") is None or _is_number(found["ratio"])):
        yield "ratio must be a number or null"
    settings = found.get("settings")
    if not isinstance(settings, dict) or not all(isinstance(chosen, dict) for chosen in settings.values()):
        yield "settings must be a table of tables"
    for name, task in found["tasks"].items():
        at = f"tasks.{line(name)[:60]}"
        if not isinstance(task, dict) or task.get("status") not in _STATUSES:
            yield f"{at}.status must be one of {', '.join(_STATUSES)}"
        elif not isinstance(task.get("reason"), str) or not isinstance(task.get("figures"), dict):
            yield f"{at} lacks a reason or figures"
        elif not all(_is_figure(figure) for figure in task["figures"].values()):
            yield f"{at}.figures must have a finite mean, and ends of an interval or null"


def _is_figure(value: Any) -> bool:
    if not isinstance(value, dict) or not _is_number(value.get("mean")):
        return False
    ends = (value.get("low"), value.get("high"))
    return (all(map(_is_number, ends)) or ends == (None, None)) and type(value.get("n")) is int


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
