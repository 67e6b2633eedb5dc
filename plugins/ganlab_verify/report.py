"""The experiment under verification, and the result of one check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["passed", "failed", "not run", "refused", "skipped"]


@dataclass(frozen=True)
class Source:
    """The experiment under verification, as the command line names it: every process reads it again.

    Attributes:
        gin_files: Experiment files, by path or by the name of a shipped one.
        params: Overrides, each `NAME=VALUE`.
        no_plugin: Names of plugins to leave out.
        plugin_file: A plugin in one file, or None for the `ganlab_plugins.py` beside the first experiment file.
    """

    gin_files: tuple[str, ...]
    params: tuple[str, ...] = ()
    no_plugin: tuple[str, ...] = ()
    plugin_file: str | None = None


@dataclass(frozen=True)
class Row:
    """The result of one check.

    Attributes:
        check: The check's name: `replicas`, `graph`, `gradients`, `microbatches`, `resume` or `tpu`.
        status: `passed`, `failed`, or `not run` if the check could not be made, which does not count as passed;
            `refused` if a part of the experiment refuses by name what the check needs, which counts as passed;
            `skipped` if it needs a large installation that was not requested.
        figure: The check's worst figure, whose meaning depends on the check; None where there is none.
        limit: The value that the figure must not exceed, or None.
        detail: The finding in words, a paragraph.
        data: Everything else that was measured, as values that JSON can represent.
    """

    check: str
    status: Status
    figure: float | None
    limit: float | None
    detail: str
    data: dict[str, Any] = field(default_factory=dict)


def merged(check: str, agreement: str, rows: Sequence[Row]) -> Row:
    """Merges rows that belong together: the first that did not pass, or the one nearest to its limit.

    Args:
        check: The check's name.
        agreement: A sentence that states what agrees if all passed.
        rows: The rows.
    """
    for status in ("failed", "not run"):
        for row in rows:
            if row.status == status:
                return row
    nearest = max(rows, key=lambda row: (row.figure or 0.0) / (row.limit or 1.0))
    data = {"worst": {where: figures for row in rows for where, figures in row.data.get("worst", {}).items()}}
    notes = dict.fromkeys(note for row in rows for note in row.data.get("notes", ()))
    detail = " ".join([agreement, nearest.detail, *notes])
    return Row(check, "passed", nearest.figure, nearest.limit, detail, data)
