"""Reference results beside which a benchmark is shown, if they were made with the same suite and budget."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ganlab.commands import shown
from ganlab.errors import ConfigError, RunError
from ganlab.files import line, local, read_json, schema
from ganlab_benchmark.results import FORMAT, STATUSES
from ganlab_benchmark.suite import shipped_suites

NO_REFERENCE = "none"
_LARGEST = 1 << 26

_NUMBER = schema.number(-1e300, 1e300)
_END = schema.null_or(_NUMBER)
_FIGURE = schema.fields(
    {"mean": _NUMBER, "low": _END, "high": _END, "n": schema.whole()}, {"interval": schema.null_or(schema.TEXT)}
)
_INTERVAL = schema.Rule(
    "a figure with both ends of an interval, or with none",
    lambda value: isinstance(value, dict) and (value.get("low") is None) == (value.get("high") is None),
    lambda value: [("", value, _FIGURE)],
)
_SCHEMA = schema.fields(
    {
        "format": schema.Rule(f"{FORMAT}, the format of this ganlab", lambda value: value == FORMAT),
        "suite": schema.fields({"hash": schema.TEXT}),
        "budget": schema.table(),
        "versions": schema.table(schema.TEXT),
        "date": schema.TEXT,
        "constraints": schema.table(
            schema.fields(
                {
                    "origin": schema.TEXT,
                    "ratio": schema.null_or(_NUMBER),
                    "settings": schema.table(schema.table(schema.TEXT)),
                    "tasks": schema.table(
                        schema.fields(
                            {
                                "status": schema.word(*STATUSES),
                                "reason": schema.TEXT,
                                "figures": schema.table(_INTERVAL),
                            }
                        )
                    ),
                },
                {"steps": schema.table(schema.whole())},
            )
        ),
    }
)


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
    real = Path(os.path.realpath(path))
    remedy = "Give the results.json of a benchmark, as 'ganlab benchmark' wrote it."
    try:
        reference: dict[str, Any] = read_json(real.parent, real.name, _SCHEMA, most=_LARGEST, remedy=remedy)
    except OSError as error:
        raise ConfigError(f"--against {shown(path)} cannot be read: {error.strerror}. {remedy}") from None
    except RunError as error:
        raise ConfigError(f"--against {error}") from None
    return reference


def held_against(results: Mapping[str, Any], reference: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """A reference as it stands in results: its constraints, and warnings of what differs.

    Args:
        results: The results that it is shown beside; of them only `suite`, `budget` and `versions` are read.
        reference: The reference.
        path: Its file.

    Raises:
        ConfigError: It was made with another suite or another budget.
    """
    for part, mine, theirs in (
        ("suite", results["suite"]["hash"], reference["suite"]["hash"]),
        ("budget", results["budget"], reference["budget"]),
    ):
        if mine != theirs:
            which = f" ({line(theirs)} instead of {line(mine)})" if isinstance(theirs, str) else ""
            raise ConfigError(
                f"--against {shown(path)} was made with another {part}{which}, so that its numbers cannot be compared "
                f"with these. Use the same {part}, or leave the file out: --against none."
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
