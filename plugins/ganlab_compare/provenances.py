"""The provenance of compared runs: versions, commit and devices, once for all runs that share them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ganlab.errors import RunError
from ganlab.runs import RunDirectory
from ganlab_compare.loaded_runs import RunSummary


@dataclass(frozen=True)
class Origin:
    """The provenance that some runs share.

    Attributes:
        fields: Texts by the names of fields.
        runs: The runs' names.
    """

    fields: dict[str, str]
    runs: tuple[str, ...]


def origins(runs: Iterable[RunSummary]) -> list[Origin]:
    """The origins of runs, those of most runs first.

    Args:
        runs: The runs. A run whose run.json is missing or has no provenance has no fields.
    """
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for run in runs:
        groups.setdefault(tuple(_fields(run).items()), []).append(run.name)
    shared = [Origin(dict(fields), tuple(names)) for fields, names in groups.items()]
    return sorted(shared, key=lambda origin: -len(origin.runs))


def _fields(run: RunSummary) -> dict[str, str]:
    try:
        info = RunDirectory(run.path).info
    except RunError:
        return {}
    known = info.get("provenance", {})
    packages = dict(known.get("packages", {}))
    fields = {
        "ganlab": packages.pop("ganlab", None),
        "packages": ", ".join(f"{name} {version}" for name, version in sorted(packages.items())),
        "git": _commit(known.get("git") or {}),
        "devices": ", ".join(known.get("devices", ())),
        "replicas": info.get("replicas"),
        "strategy": info.get("strategy"),
        "python": known.get("python"),
        "platform": known.get("platform"),
    }
    return {field: str(value) for field, value in fields.items() if value not in (None, "")}


def _commit(git: Mapping[str, Any]) -> str:
    commit = git.get("commit")
    return f"{commit}{', with changes' if git.get('dirty') else ''}" if commit else "outside a repository"
