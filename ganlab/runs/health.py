"""Health and warnings of a run as its run.json has them: read without TensorFlow, whatever the file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# A stranger's file may hold any number of sentences of any length.
_MOST, _LONGEST = 100, 2000

# What a sentence without a name is counted under.
UNNAMED = "other"

# Names that a table's cell has room for.
_NAMES = 3


def complaints_of(info: Mapping[str, Any]) -> tuple[str, ...] | None:
    """What was wrong when the run was looked at last, each `<name>: <sentence>`.

    Args:
        info: Of run.json.

    Returns:
        The complaints, none for a healthy run; None where nobody has looked.
    """
    found = info.get("health")
    return _sentences(found) if isinstance(found, list) else None


def warnings_of(info: Mapping[str, Any]) -> tuple[str, ...]:
    """What the run has warned of while it trained, the first warning first."""
    found = info.get("warnings")
    return _sentences(found) if isinstance(found, list) else ()


def name_of(sentence: str) -> str:
    """The name before a complaint's or warning's colon, such as `gradient_penalty`; `UNNAMED` where there is none."""
    name, colon, _ = sentence.partition(": ")
    return name if colon and name and name.isprintable() and " " not in name else UNNAMED


def in_brief(complaints: Sequence[str] | None) -> str:
    """Health for a cell of a table: `ok`, the names of what complains, or a dash where nobody has looked."""
    if complaints is None:
        return "-"
    names = list(dict.fromkeys(map(name_of, complaints)))
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more or "ok"


def _sentences(found: Sequence[Any]) -> tuple[str, ...]:
    return tuple(str(item)[:_LONGEST] for item in found[:_MOST])
