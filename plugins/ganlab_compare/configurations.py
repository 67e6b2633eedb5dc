"""Configurations: runs whose settings are equal but for the seed, and the settings in which they differ."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ganlab.commands import listed
from ganlab.errors import ConfigError, nearest
from ganlab.runs import SEED, Scalar, described, differing, setting
from ganlab_compare.labels import resolve, shortened
from ganlab_compare.loaded_runs import ENDED, RunSummary

# The longest label, with which legends and rows begin.
_LONGEST = 80

# The end of a label that was cut.
CUT = "…"


@dataclass(frozen=True)
class Configuration:
    """Runs of equal settings, one per seed.

    Attributes:
        label: The settings that distinguish it, in short; unique in a comparison.
        settings: The settings that differ between configurations, by full name; those it does not have are absent.
        runs: Its runs, by seed.
    """

    label: str
    settings: dict[str, Scalar]
    runs: tuple[RunSummary, ...]

    @property
    def diverged(self) -> list[RunSummary]:
        """Its runs that diverged."""
        return [run for run in self.runs if run.status == "diverged"]

    @property
    def unfinished(self) -> list[RunSummary]:
        """Its runs that are in progress or stopped short: `running`, `killed`, `interrupted` or `failed`."""
        return [run for run in self.runs if run.status not in ENDED]

    @property
    def unhealthy(self) -> list[RunSummary]:
        """Its runs that failed their last health check."""
        return [run for run in self.runs if run.health]

    @property
    def changed(self) -> list[RunSummary]:
        """Its runs that were changed midway: the settings do not hold from their first step on."""
        return [run for run in self.runs if run.changes]

    def best_before_change(self, tag: str) -> list[RunSummary]:
        """Its runs whose best value of a metric is from before their last change, with other settings, data or code."""
        return [run for run in self.changed if run.best_steps.get(tag, run.step) <= run.changes[-1].step]

    @property
    def health(self) -> str:
        """`ok`, `2 unhealthy`, or a dash if none of its runs was checked."""
        if self.unhealthy:
            return f"{len(self.unhealthy)} unhealthy"
        return "ok" if any(run.health is not None for run in self.runs) else "-"

    @property
    def warnings(self) -> int:
        """The number of warnings of all its runs."""
        return sum(len(run.warnings) for run in self.runs)

    @property
    def wall_seconds(self) -> float | None:
        """The runs' mean training time in seconds; None where none is known."""
        return _mean([run.wall_seconds for run in self.runs])

    @property
    def steps_per_second(self) -> float | None:
        """The runs' mean speed in generator updates a second; None where none is known."""
        return _mean([run.steps_per_second for run in self.runs])


def configurations(
    runs: Sequence[RunSummary], by: Sequence[str] = ()
) -> tuple[tuple[Configuration, ...], tuple[str, ...]]:
    """Groups runs that differ only in the seed.

    Args:
        runs: The runs to compare.
        by: The settings to group by, in full or in short; none for all of them.

    Returns:
        The configurations, sorted by their settings, and the names of these in full.

    Raises:
        ConfigError: No run has such a setting, or a short name means several.
    """
    known = dict.fromkeys(name for run in runs for name in run.settings)
    columns = [resolve(name, known, "setting") for name in by] or differing(run.settings for run in runs)
    groups: dict[Any, list[RunSummary]] = {}
    for run in runs:
        # Without names to group by, settings that are not columns separate runs too: nothing is pooled unasked.
        grouping = _values(run, columns) if by else {name: run.settings[name] for name in run.settings if name != SEED}
        groups.setdefault(frozenset(grouping.items()), []).append(run)
    ordered = sorted(groups.values(), key=lambda group: [_order(setting(group[0].settings, c)) for c in columns])
    labels = _labels([_values(group[0], columns) for group in ordered], columns)
    rows = tuple(
        Configuration(label, _values(group[0], columns), tuple(sorted(group, key=_by_seed)))
        for label, group in zip(labels, ordered, strict=True)
    )
    return rows, tuple(dict.fromkeys(columns))


def common_settings(runs: Sequence[RunSummary], columns: Sequence[str]) -> dict[str, Scalar]:
    """The settings that have one value wherever they apply, except the columns and the seed."""
    values: dict[str, set[Scalar]] = {}
    for run in runs:
        for name, value in run.settings.items():
            values.setdefault(name, set()).add(value)
    common = {name: next(iter(distinct)) for name, distinct in values.items() if len(distinct) == 1}
    return {name: value for name, value in common.items() if name not in (SEED, *columns)}


def pooled(rows: Sequence[Configuration]) -> list[str]:
    """The settings in which runs of one configuration differ, except the seed."""
    names = [name for one in rows for name in differing(run.settings for run in one.runs)]
    return list(dict.fromkeys(names))


def pooled_sentence(names: Sequence[str]) -> str:
    """The note on settings that are pooled."""
    return f"Rows pool runs that differ in {listed(names, 6)}: means and intervals are over these too, not seeds alone."


def reference(text: str, rows: Sequence[Configuration]) -> str:
    """The label of the configuration that a text means.

    Args:
        text: The label, or words of it or settings that no other row has: `weight=10`.
        rows: The configurations.

    Raises:
        ConfigError: It matches none, or more than one.
    """
    labels = [one.label for one in rows]
    if text in labels:
        return text
    having = [one.label for one in rows if all(_says(one, word) for word in text.split())]
    if len(having) == 1:
        return having[0]
    if having:
        raise ConfigError(f"The reference {text!r} may be {' or '.join(map(repr, having))}: be more specific.")
    near = nearest(text, labels) or f" There are: {listed([repr(label) for label in labels], 12)}."
    raise ConfigError(f"No configuration matches {text!r}.{near}")


def _says(row: Configuration, word: str) -> bool:
    name, _, wanted = word.partition("=")
    own = [value for each, value in row.settings.items() if f".{each}".endswith(f".{name}")]
    return any(part == word or part.endswith(f".{word}") for part in row.label.split()) or any(
        str(value) == wanted or _number(value) == _number(wanted) for value in own
    )


def _number(value: Scalar) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan


def _labels(settings: Sequence[dict[str, Scalar]], columns: Sequence[str]) -> list[str]:
    short = shortened(columns)
    labels: list[str] = []
    for values in settings:
        text = described(values, columns) or " ".join(f"no {short[name]}" for name in columns) or "all runs"
        text = text if len(text) <= _LONGEST else text[:_LONGEST].rpartition(" ")[0] + f" {CUT}"
        label = next(numbered for numbered in _numbered(text) if numbered not in labels)
        labels.append(label)
    return labels


def _numbered(text: str) -> Iterator[str]:
    yield text
    yield from (f"({number}) {text}" for number in itertools.count(2))


def _values(run: RunSummary, columns: Sequence[str]) -> dict[str, Scalar]:
    values = {name: setting(run.settings, name) for name in columns}
    return {name: value for name, value in values.items() if value is not None}


def _order(value: Scalar | None) -> tuple[int, float, str]:
    """A key for sorting: None first, then numbers by size, then texts."""
    if value is None:
        return 0, 0.0, ""
    return (2, 0.0, value) if isinstance(value, str) else (1, float(value), "")


def _by_seed(run: RunSummary) -> tuple[bool, int, str]:
    return run.seed is None, run.seed or 0, run.name


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
