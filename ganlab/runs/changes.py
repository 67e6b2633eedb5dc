"""Changes midway through a run, by `--resume --allow-changes`: read without TensorFlow, whatever run.json holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# A stranger's file may hold any number of lines of any length.
_MOST, _LONGEST = 100, 500

# Marks the name of a run that was changed midway; a star marks the best of a column.
MARK = "!"

# How many lines fit in a sentence.
_LINES = 3


@dataclass(frozen=True)
class Change:
    """One resumption with changed settings, data or code.

    Attributes:
        step: Generator updates done before the change; later ones are trained with the new values.
        what: The changes, each as `<what>: <before>, and now <after>`.
    """

    step: int
    what: tuple[str, ...]


def changes_of(info: Mapping[str, Any]) -> tuple[Change, ...]:
    """The changes midway through a run, oldest first.

    If a run later returned to an earlier step, all of the changes count from that step. A change before the first
    step is not a change midway.

    Args:
        info: The fields of run.json.
    """
    found: list[Change] = []
    first = None
    for step, what in reversed(_resumed(info)):
        first = step if first is None else min(first, step)
        if what and first > 0:
            found.append(Change(first, what))
    return tuple(reversed(found))


def to_write(info: Mapping[str, Any], keep: int) -> list[Change]:
    """The changes missing from the event files: those of the latest resumption, and those that it cut away.

    Args:
        info: The fields of run.json, with the latest resumption included.
        keep: The last step whose events were kept.
    """
    resumed, midway = _resumed(info), changes_of(info)
    # Both lists have the same end: changes before the first step come at the beginning.
    written = [step for step, what in resumed if what][-len(midway) :] if midway else []
    new = midway[-1] if midway and resumed[-1][1] else None
    return [change for change, step in zip(midway, written, strict=True) if step > keep or change is new]


def name_of(line: str) -> str:
    """The subject of a line: `experiment.seed`, `data of datasets.arrays, rows`."""
    return line.partition(": ")[0]


def in_brief(changes: Sequence[Change]) -> str:
    """Changes for a cell of a table: `at step 2`, `at steps 2, 40`; empty for none."""
    steps = list(dict.fromkeys(change.step for change in changes))
    return f"at step{'s' if len(steps) > 1 else ''} {', '.join(map(str, steps))}" if steps else ""


def in_words(changes: Sequence[Change]) -> str:
    """Changes in a line: `at step 2 (experiment.seed: 0, and now 3)`."""
    phrases = []
    for change in changes:
        more = f"; and {len(change.what) - _LINES} more" if len(change.what) > _LINES else ""
        phrases.append(f"at step {change.step} ({'; '.join(change.what[:_LINES])}{more})")
    return ", ".join(phrases)


def _resumed(info: Mapping[str, Any]) -> list[tuple[int, tuple[str, ...]]]:
    """The resumptions, each with its step and its changes."""
    return [
        (entry["step"], tuple(line[:_LONGEST] for line in entry.get("changes", ())[:_MOST]))
        for entry in info.get("resumed", [])[-_MOST:]
    ]
