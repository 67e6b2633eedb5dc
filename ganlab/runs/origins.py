"""Compares the data, code and environment that a run was trained with to those it would be resumed with.

The values in run.json may come from a stranger: any value is compared and printed, and none is trusted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ganlab.errors import ContractError
from ganlab.interfaces import Dataset
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.plugins.recipes import selector_of
from ganlab.runs.modules import hash_of
from ganlab.runs.sources import MADE_BY
from ganlab.support.formatting import listed
from ganlab.support.hashing import digest

DATA, CODE, ENVIRONMENT = "data", "code", "environment"

_HASH = re.compile(r"[0-9a-f]{32}")
_HASH_DIGITS = 8
_PARTS = 4  # whose code a module is, that a line names


def data_of(dataset: Dataset, source: Dataset | None = None) -> dict[str, Any]:
    """A dataset's fingerprint as stored in run.json, with the dataset's name under `of`, and a source's under `source`.

    Raises:
        ContractError: The fingerprint is not a mapping of names to plain values.
        PluginError: The dataset failed.
    """
    name = selector_of(dataset)
    with plugin_code(name, "fingerprint"):
        fingerprint = dataset.fingerprint()
    try:
        if not isinstance(fingerprint, Mapping) or not all(isinstance(key, str) for key in fingerprint):
            raise TypeError(f"it is {fingerprint!r:.60}")
        plain: dict[str, Any] = json.loads(json.dumps(dict(fingerprint), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ContractError(
            f"{name}.fingerprint() must return plain values by name, for example numbers, texts and lists of hashes; "
            f"{error}."
        ) from None
    if source is not None:
        plain |= {f"source {key}": value for key, value in data_of(source).items()}
    return {"of": name, **plain}


def recorded(info: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """The latest `data`, `code` or `environment` recorded in run.json; None if there is none."""
    entries = (*reversed(info.get("resumed", ())), info.get("provenance", {}))
    return next((entry[name] for entry in entries if name in entry), None)


def data_changes(before: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> list[str]:
    """The differences between two fingerprints of data, one line each; of lists of hashes, the common part counts."""
    if before is None or now is None:
        return []
    lines = []
    for name in now:
        pair = _differing(before.get(name), now[name]) if name in before and name != "of" else None
        if pair:
            lines.append(f"data of {now.get('of', 'the dataset')}, {name}: {pair}")
    return lines


def code_changes(before: Mapping[str, Any] | None, now: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The differences in the code of the parts that both have, one line for each module, which names its parts."""
    changes: dict[str, list[str]] = {}
    for part, modules in now.items():
        then = before.get(part) if before is not None else None
        if then is None:  # a new part shows up as a setting that differs
            continue
        for module in [*modules, *sorted(then.keys() - modules.keys())]:
            # A module that this part's code does not import any more may still exist unchanged.
            after = modules.get(module) or (hash_of(module) if len(module) < 200 and module != MADE_BY else None)
            pair = _differing(then.get(module), after)
            if pair:
                changes.setdefault(f"{_name(module)}: {pair}", []).append(part)
    return [f"code of {listed(parts, _PARTS)}, {change}" for change, parts in changes.items()]


def environment_changes(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> list[str]:
    """The differences between two environments, one phrase each."""
    if before is None:
        return []
    names = [*now, *sorted(before.keys() - now.keys())]
    pairs = ((name, _differing(before.get(name), now.get(name))) for name in names)
    return [f"{_name(name)}: {pair}" for name, pair in pairs if pair]


def essence(data: Mapping[str, Any], code: Mapping[str, Any]) -> list[float]:
    """Numbers, exact in float32, that are equal if data and code are equal, so that workers can compare theirs."""
    first = {name: value[:1] if isinstance(value, list) else value for name, value in data.items()}
    text = json.dumps([first, code], sort_keys=True)
    code_hash = digest(text.encode())
    return [float(int(code_hash[at : at + 6], 16)) for at in (0, 6)]


def _differing(before: Any, now: Any) -> str | None:
    """Formats two values as `old, and now new`; None if they are equal."""
    if _are_hashes(before) and _are_hashes(now):
        # The first pair that differs, among the hashes that both have.
        pairs = [pair for pair in zip(before, now, strict=False) if pair[0] != pair[1]]
        if not pairs:
            return None
        before, now = pairs[0]
    if before == now:
        return None
    return f"{_text(before)}, and now {_text(now)}"


def _are_hashes(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and _HASH.fullmatch(item) for item in value)


def _text(value: Any) -> str:
    if value is None:
        return "not there"
    if isinstance(value, str) and _HASH.fullmatch(value):
        return f"content {value[:_HASH_DIGITS]}"
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _name(name: str) -> str:
    return name if name.isascii() and name.isprintable() and len(name) <= 80 else f"{ascii(name)[:77]}..."
