"""Changes midway through a run, by `--resume --allow-changes`: read without TensorFlow, whatever run.json holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# A stranger's file may hold any number of lines of any length.
_MOST, _LONGEST = 100, 500

# The setting that a run may be extended by, and the field of a resumption that did, with the earlier number of steps.
STEPS, EXTENDS = "experiment.steps", "extends"

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
    changes: list[Change] = []
    first = None
    for step, what, _ in reversed(_resumed(info)):
        first = step if first is None else min(first, step)
        if what and first > 0:
            changes.append(Change(first, what))
    return tuple(reversed(changes))


def to_write(info: Mapping[str, Any], keep: int) -> list[Change]:
    """The changes missing from the event files: those of the latest resumption, and those that it cut away.

    Args:
        info: The fields of run.json, with the latest resumption included.
        keep: The last step whose events were kept.
    """
    resumed, midway = _resumed(info), changes_of(info)
    # Both lists have the same end: changes before the first step come at the beginning.
    written = [step for step, what, _ in resumed if what][-len(midway) :] if midway else []
    new = midway[-1] if midway and resumed[-1][1] else None
    return [change for change, step in zip(midway, written, strict=True) if step > keep or change is new]


def extended_at(info: Mapping[str, Any]) -> int | None:
    """The step from which the latest resumption extends the run; None if it does not."""
    resumed = _resumed(info)
    return resumed[-1][0] if resumed and resumed[-1][2] is not None else None


def ends_of(info: Mapping[str, Any]) -> set[int]:
    """The steps at which a run had ended before it was extended: its rows there have what was left of iterations."""
    ends: set[int] = set()
    for step, _, steps in _resumed(info):
        ends = {end for end in ends if end <= step} | ({step} if steps == step else set())
    return ends


def settled_at(info: Mapping[str, Any]) -> int:
    """The step from which a run has had its present settings: earlier ones cannot be trained again by them."""
    return max((change.step for change in all_changes(info)), default=0)


def past(info: Mapping[str, Any], until: int) -> list[dict[str, Any]]:
    """The resumptions that a fork takes over from its parent: those up to the step at which it begins."""
    entries: list[dict[str, Any]] = [{"step": one.step, "changes": list(one.what)} for one in all_changes(info)]
    entries += [{"step": end, "changes": [], EXTENDS: end} for end in ends_of(info)]
    return sorted((entry for entry in entries if entry["step"] <= until), key=lambda entry: int(entry["step"]))


def all_changes(info: Mapping[str, Any]) -> tuple[Change, ...]:
    """The changes midway, oldest first, among them the settings of a fork that differ from its parent's."""
    changes = list(changes_of(info))
    forked = info.get("forked_from", {})
    step, settings = forked.get("step", 0), forked.get("settings")
    if settings is not None:
        longer = any(at == step and steps is not None for at, _, steps in _resumed(info))
        new = [(name, value) for name, value in settings.items() if not (longer and name == STEPS)][:_MOST]
        what = tuple(f"{name}: now {value!r}"[:_LONGEST] for name, value in new)
        changes += [Change(step, what)] if what and step else []
    return tuple(sorted(changes, key=lambda change: change.step))


def in_words(changes: Sequence[Change]) -> str:
    """Changes in a line: `at step 2 (experiment.seed: 0, and now 3)`."""
    phrases = []
    for change in changes:
        more = f"; and {len(change.what) - _LINES} more" if len(change.what) > _LINES else ""
        phrases.append(f"at step {change.step} ({'; '.join(change.what[:_LINES])}{more})")
    return ", ".join(phrases)


def _resumed(info: Mapping[str, Any]) -> list[tuple[int, tuple[str, ...], int | None]]:
    """The resumptions: the step of each, its changes, and the earlier number of steps if it only extends the run."""
    resumptions: list[tuple[int, tuple[str, ...], int | None]] = []
    for entry in info.get("resumed", [])[-_MOST:]:
        extends = entry.get(EXTENDS)
        lines = entry.get("changes", [])[:_MOST] if extends is None else ()
        resumptions.append((entry["step"], tuple(line[:_LONGEST] for line in lines), extends))
    return resumptions
