"""Checks the fields of sweep.json before anything relies on them: the file may come from somebody else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ganlab.errors import RunError
from ganlab.support.paths import is_name
from ganlab.telemetry.jsonl import NON_FINITE

_FIELDS = ("asked", "configurations", "proposals", "trials")


def check_fields(info: Any, path: str) -> None:
    """Checks that the fields of sweep.json have the right types, and that its names are valid file names.

    Args:
        info: The parsed content.
        path: The file, for the message.

    Raises:
        RunError: A field is missing or invalid.
    """
    missing = [name for name in _FIELDS if not isinstance(info, dict) or name not in info]
    if missing:
        raise RunError(f"{path} is not a sweep of this ganlab: it lacks {', '.join(missing)}. Start a new sweep.")
    _check(info, _RULES, path, "")
    _check(info["asked"], _ASKED, path, "asked.")
    for name, fields in info["configurations"].items():
        if not is_name(name) or not _is_table(fields) or not _is_table_of_texts(fields.get("settings")):
            raise RunError(f"{path}: {name!r:.60} is not a configuration of a sweep. Restore it, or start a new sweep.")
    for proposal in info["proposals"]:
        if not _is_proposal(proposal):
            raise RunError(f"{path}: {proposal!r:.60} is not a proposal of a search. Restore it, or start a new sweep.")
    for name, note in info["trials"].items():
        if not (_is_table_of_texts(note) and {"status", "error"} <= note.keys()):
            raise RunError(f"{path}: {name!r:.60} is not a note on a trial. Restore it, or start a new sweep.")


def _check(
    fields: Mapping[str, Any], rules: Mapping[str, tuple[str, Callable[[Any], bool]]], path: str, where: str
) -> None:
    for name, (rule, holds) in rules.items():
        if name in fields and not holds(fields[name]):
            raise RunError(
                f"{path}: {where}{name} = {fields[name]!r:.60} must be {rule}. Restore it, or start a new sweep."
            )


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_table_of_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _is_proposal(value: Any) -> bool:
    if not (isinstance(value, dict) and _is_table_of_texts(value.get("settings"))):
        return False
    figure, configuration = value.get("value"), value.get("configuration")
    return (
        (figure is None or figure in NON_FINITE or (type(figure) in (int, float) and abs(figure) < 10**300))
        and (configuration is None or isinstance(configuration, str))
        and all(isinstance(value.get(name, False), bool) for name in ("ended", "given_up"))
        and isinstance(value.get("error", ""), str)
        and type(value.get("last_step", 0)) is int
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_count(value: Any) -> bool:
    return type(value) is int and 1 <= value < 2**31


def _are_seeds(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 2**31 for item in value)


_COUNT = "a whole number of at least 1"
_TEXTS = "a list of texts"
_TEXT = "a text"
_RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("asked", "configurations", "trials"), ("an object of fields", _is_table)),
    "proposals": ("a list", _is_list),
    "folder": (_TEXT, _is_text),
    "threads": (_COUNT, _is_count),
}
_ASKED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "seeds": ("a list of whole numbers of at least 0", _are_seeds),
    "jobs": (_COUNT, _is_count),
    "budget": (f"{_COUNT} or null", lambda value: value is None or _is_count(value)),
    **dict.fromkeys(
        ("plugin_file", "plugin_content", "objective"),
        ("a text or null", lambda value: value is None or _is_text(value)),
    ),
    **dict.fromkeys(("search", "launcher", "direction"), (_TEXT, _is_text)),
    **dict.fromkeys(
        ("gin", "params", "grid", "range", "no_plugin", "search_options", "launcher_options"), (_TEXTS, _are_texts)
    ),
}
