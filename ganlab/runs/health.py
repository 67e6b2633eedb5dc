"""Health and warnings of a run, as recorded in its run.json: read without TensorFlow, whatever the file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ganlab.support.formatting import listed

# A stranger's file may hold any number of sentences of any length.
_MOST, _LONGEST = 100, 2000

# The name under which sentences without a name are counted.
UNNAMED = "other"


def complaints_of(info: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Returns the complaints of the latest health check, each as `<name>: <sentence>`.

    Args:
        info: The fields of run.json.

    Returns:
        The complaints; empty for a healthy run, None if the run was never checked.
    """
    complaints = info.get("health")
    return None if complaints is None else _sentences(complaints)


def warnings_of(info: Mapping[str, Any]) -> tuple[str, ...]:
    """The warnings that the run issued while it trained, oldest first."""
    return _sentences(info.get("warnings", ()))


def name_of(sentence: str) -> str:
    """The name before the colon of a complaint or warning, e.g. `gradient_penalty`; `UNNAMED` if there is none."""
    name, colon, _ = sentence.partition(": ")
    return name if colon and name and name.isprintable() and " " not in name else UNNAMED


def in_brief(complaints: Sequence[str] | None) -> str:
    """Health for a cell of a table: `ok`, the names of the complaints, or a dash if the run was never checked."""
    if complaints is None:
        return "-"
    names = list(dict.fromkeys(map(name_of, complaints)))
    return listed(names) or "ok"


def _sentences(sentences: Sequence[str]) -> tuple[str, ...]:
    return tuple(item[:_LONGEST] for item in sentences[:_MOST])
