"""Reference results beside which a benchmark is shown, if they were made with the same suite and budget."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ganlab.benchmarking.results import DONE, FAILED, FORMAT, NONE, PARTIAL, PENDING, REFUSED
from ganlab.benchmarking.suite import shipped_suites
from ganlab.config.files import shown
from ganlab.errors import ConfigError, RunError
from ganlab.support.paths import local
from ganlab.support.schema import TEXT, Rule, fields, null_or, number, table, whole, word
from ganlab.support.strict_json import read_json
from ganlab.support.terminal import line

NO_REFERENCE = "none"
_LARGEST = 1 << 26

_NUMBER = number(-1e300, 1e300)
_END = null_or(_NUMBER)
_FIGURE = fields({"mean": _NUMBER, "low": _END, "high": _END, "n": whole()}, {"interval": null_or(TEXT)})
_INTERVAL = Rule(
    "a figure with both ends of an interval, or with none",
    lambda value: isinstance(value, dict) and (value.get("low") is None) == (value.get("high") is None),
    lambda value: [("", value, _FIGURE)],
)
_SCHEMA = fields(
    {
        "format": Rule(f"{FORMAT}, the format of this ganlab", lambda value: value == FORMAT),
        "suite": fields({"hash": TEXT}),
        "budget": table(),
        "versions": table(TEXT),
        "date": TEXT,
        "constraints": table(
            fields(
                {
                    "origin": TEXT,
                    "ratio": null_or(_NUMBER),
                    "settings": table(table(TEXT)),
                    "tasks": table(
                        fields(
                            {
                                "status": word(DONE, PARTIAL, FAILED, REFUSED, PENDING, NONE),
                                "reason": TEXT,
                                "figures": table(_INTERVAL),
                            }
                        )
                    ),
                },
                {"steps": table(whole())},
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
        found: dict[str, Any] = read_json(real.parent, real.name, _SCHEMA, most=_LARGEST, remedy=remedy)
    except OSError as error:
        raise ConfigError(f"--against {shown(path)} cannot be read: {error.strerror}. {remedy}") from None
    except RunError as error:
        raise ConfigError(f"--against {error}") from None
    return found


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
