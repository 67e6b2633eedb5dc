"""What a paper may report of compared runs: tables, what differs beyond chance and by which test, what was tuned."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ganlab.commands import counted, listed
from ganlab.errors import ConfigError
from ganlab.runs import Scalar, differing
from ganlab_compare.brief import main_metric
from ganlab_compare.comparison import Comparison, limits_of_runs
from ganlab_compare.configurations import Configuration, configurations, reference
from ganlab_compare.doors import rendered
from ganlab_compare.labels import short_label, shortened
from ganlab_compare.metrics import Metric, measured_apart
from ganlab_compare.ranking import LEVEL
from ganlab_compare.statistics import (
    BOOTSTRAP_FROM,
    RESAMPLES,
    bootstrap_intervals,
    expected_best,
    holm,
    improvement,
    interquartile_mean,
)
from ganlab_compare.table import statuses, text_of
from ganlab_compare.warnings import last_value

# Settings of the data: runs that differ in these have different tasks.
_DATA = re.compile(r"(.*/)?(\w*dataset|datasets\..*)")
# Values that differ by less, relative to the largest, differ by rounding alone.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Row:
    """A row of a paper's table: the runs of its best setting."""

    label: str
    setting: str  # the chosen one, in short; empty if nothing was tuned
    runs: str  # how many are in which state
    figures: tuple[int, ...]  # the number of finite ones of each task, the strata
    iqm: float | None  # the interquartile mean of all of them
    low: float | None  # the stratified bootstrap's 95% interval of it
    high: float | None
    curve: tuple[float, ...]  # the expected best mean of 1, 2, ... of the settings tried


@dataclass(frozen=True)
class Difference:
    """The difference between two rows, of the means over seeds, each with the mean of its figures over tasks.

    Where all runs have finite figures that vary, the test is Student's over seeds that both rows have, else Welch's. In
    the exact test of Mann and Whitney, "ranks", runs that diverged are worse than all others.
    """

    effect: float | None = None  # None where a row has no finite figure
    test: Literal["paired", "Welch", "ranks"] | None = None  # None for too few seeds
    low: float | None = None  # the 95% interval; none for ranks
    high: float | None = None
    pairs: int = 0
    p: float | None = None
    verdict: Literal["better", "worse", "open"] = "open"
    label: str = ""
    against: str = ""
    choices: int = 1  # the larger number of settings that one of the rows was chosen from, by which p is multiplied
    corrected: float | None = None  # p times choices, with Holm's correction for the differences of all tables


@dataclass(frozen=True)
class Table:
    """One metric: the rows, best first, and the differences between all rows, or from one that was named."""

    metric: Metric
    tasks: tuple[str, ...]  # none if there is one
    normalized: bool  # whether figures are fractions of the range of their task's limits
    rows: tuple[Row, ...]
    against: str
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class Paper:
    """The tables, the settings that name rows, those tuned for each row with the values tried, and caveats."""

    tables: tuple[Table, ...]
    columns: tuple[str, ...]
    tuned: dict[str, dict[str, tuple[Scalar, ...]]]
    notes: tuple[str, ...]

    def text(self, language: Literal["markdown", "latex"]) -> str:
        """The tables and the sentences that may be written of them; those in LaTeX need the package booktabs."""
        helpers = {one.__name__: one for one in (counted, interval, listed, shortened)}
        constants = {
            "sure": "95%",
            "level": LEVEL,
            "resamples": f"{RESAMPLES:,}",
            "enough": BOOTSTRAP_FROM,
            "texts": lambda values: [*map(text_of, values)],
        }
        return rendered("paper.txt", language, paper=self, **helpers, **constants)


@dataclass(frozen=True)
class _Setting:
    """A setting tried for a row, with its figures of each task by seed."""

    runs: Configuration
    tasks: tuple[dict[str | int, float], ...]

    @property
    def seeds(self) -> dict[str | int, float]:
        """The mean over tasks by seed, of seeds that all tasks have."""
        shared = [seed for seed in self.tasks[0] if all(seed in task for task in self.tasks)]
        return {seed: float(np.mean([task[seed] for task in self.tasks])) for seed in shared}

    def merit(self, way: str) -> tuple[bool, float]:
        """A key to sort by: settings without runs that diverged are best, then those with the best mean."""
        values = np.array([*self.seeds.values()]) * (1 if way == "max" else -1)
        finite = values[np.isfinite(values)]
        return 0 < len(finite) == len(values), float(finite.mean()) if len(finite) else -math.inf


def paper(
    comparison: Comparison, *, by: Sequence[str] = (), metrics: Sequence[Metric] = (), against: str | None = None
) -> Paper:
    """The statistics of a paper, of all runs of a comparison. Runs that differ in their data have different tasks.

    Args:
        comparison: The comparison.
        by: The settings that name rows; none for the parts that differ, for example `constraints`, or else for all
            settings that differ. Others in which a row's runs differ were tuned.
        metrics: The metrics to report; none for the comparison's main metric.
        against: The row that the others are compared with, by its label or words of it; None for all pairs of rows.

    Raises:
        ConfigError: A setting or row is unknown, or which values of a metric are better, or rows share no task.
    """
    runs = [run for one in comparison.configurations for run in one.runs]
    named = configurations(runs, by)[1] if by else ()
    names = [name for name in differing(run.settings for run in runs) if name not in named]
    data = [name for name in names if _DATA.fullmatch(name)]
    others = [name for name in names if name not in data]
    columns = named or tuple([name for name in others if "." not in name] or others)
    if not columns:  # nothing but the data differs: each task is a row
        columns, data = tuple(data), []
    rows = configurations(runs, columns)[0] if columns else comparison.configurations
    tasks = configurations(runs, data)[0] if data else (Configuration("", {}, tuple(runs)),)
    tuned = {row.label: _tuned(row, tasks) for row in rows}
    tried = {row.label: configurations(row.runs, list(of))[0] if (of := tuned[row.label]) else (row,) for row in rows}
    main = main_metric(comparison)
    if main is None:
        raise ConfigError("--paper: the runs have no metric to compare. Give --metric TAG:max or TAG:min.")
    tables = [_table(tried, tasks, metric, against) for metric in metrics or [main]]
    corrected = iter(holm([one.p * one.choices for table in tables for one in table.differences if one.p is not None]))
    tables = [replace(of, differences=tuple(_judged(one, corrected) for one in of.differences)) for of in tables]
    return Paper(tuple(tables), columns, tuned, tuple(measured_apart(names)))


def _tuned(row: Configuration, tasks: Sequence[Configuration]) -> dict[str, tuple[Scalar, ...]]:
    """The settings in which a row's runs of one task differ, with all their values; those of tasks are not tuned."""
    of_tasks = [{run.path for run in task.runs} for task in tasks]
    names = [name for of in of_tasks for name in differing(run.settings for run in row.runs if run.path in of)]
    values = {name: {run.settings[name] for run in row.runs if name in run.settings} for name in names}
    return {name: tuple(sorted(of, key=lambda value: (isinstance(value, str), value))) for name, of in values.items()}


def interval(one: Row | Difference) -> str:
    """An interval as tables show it; a dash for none."""
    return "-" if one.low is None or one.high is None else f"[{one.low:.3g}, {one.high:.3g}]"


def _judged(one: Difference, corrected: Iterator[float]) -> Difference:
    p = None if one.p is None else next(corrected)
    return replace(one, corrected=p, verdict=one.verdict if p is not None and p <= LEVEL else "open")


def _table(
    tried: Mapping[str, Sequence[Configuration]], tasks: Sequence[Configuration], metric: Metric, against: str | None
) -> Table:
    tag, way = metric.tag, metric.direction
    if way is None:
        raise ConfigError(
            f"--paper: which values of {tag} are better is unknown. Give --metric {tag}:max or {tag}:min."
        )
    having = {label: [one for one in of if any(tag in run.last for run in one.runs)] for label, of in tried.items()}
    having = {label: of for label, of in having.items() if of}
    paths = [{run.path for one in of for run in one.runs} for of in having.values()]
    figures = [{run.path: value for run in task.runs if (value := last_value(run, tag)) is not None} for task in tasks]
    common = [place for place, of_task in enumerate(figures) if all(of & of_task.keys() for of in paths)]
    if not having or not common:
        raise ConfigError(f"--paper: rows share no task with {tag}. Give another --metric, or fewer runs.")
    limits = [limits_of_runs(tasks[place].runs, tag) for place in common]
    normalized = len(set(limits)) > 1 and all(map(math.isfinite, itertools.chain(*limits)))
    scales = [(low, high - low) if normalized else (0.0, 1.0) for low, high in limits]
    covered = {run.path for place in common for run in tasks[place].runs}

    def setting(one: Configuration) -> _Setting:
        runs = tuple(run for run in one.runs if run.path in covered)
        seeds = {run.path: run.name if run.seed is None else run.seed for run in runs}
        of_tasks = [
            {seeds[path]: (value - low) / width for path, value in figures[place].items() if path in seeds}
            for place, (low, width) in zip(common, scales, strict=True)
        ]
        return _Setting(replace(one, runs=runs), tuple(of_tasks))

    settings = {label: [setting(one) for one in of] for label, of in having.items()}
    best = {label: max(of, key=lambda one: one.merit(way)) for label, of in settings.items()}
    order = sorted(best, key=lambda label: best[label].merit(way), reverse=True)
    first = order[0] if against is None else reference(against, [replace(best[x].runs, label=x) for x in order])
    pairs = [(label, first) for label in order if label != first]
    if against is None:
        pairs += [(worse, better) for better, worse in itertools.combinations(order[1:], 2)]
    differences = []
    for a, b in pairs:
        choices = max(len(settings[a]), len(settings[b]))
        differences.append(replace(_difference(best[a], best[b], way), label=a, against=b, choices=choices))
    return Table(
        metric,
        tuple(tasks[place].label for place in common if len(tasks) > 1),
        normalized,
        tuple(_row(label, best[label], settings[label], way) for label in order),
        first,
        tuple(differences),
    )


def _row(label: str, best: _Setting, tried: Sequence[_Setting], way: str) -> Row:
    finite = [[value for value in task.values() if math.isfinite(value)] for task in best.tasks]
    strata = [np.array(values) for values in finite if values]
    several = any(len(values) > 1 for values in strata)
    low, high = bootstrap_intervals(*strata)[1] if several else (None, None)
    # A setting with a run that diverged is no better than the worst of the others.
    merits = [one.merit(way) for one in tried]
    worst = min([mean for whole, mean in merits if whole], default=math.nan)
    sign = 1 if way == "max" else -1
    return Row(
        label,
        short_label(best.runs.settings, shortened(list(best.runs.settings))) if len(tried) > 1 else "",
        statuses(best.runs),
        tuple(map(len, finite)),
        interquartile_mean(np.concatenate(strata)) if strata else None,
        low,
        high,
        tuple(expected_best([sign * (mean if whole else worst) for whole, mean in merits], way)),
    )


def _difference(one: _Setting, other: _Setting, way: str) -> Difference:
    from scipy import stats

    mine, theirs = one.seeds, other.seeds
    ranked = improvement(list(mine.values()), list(theirs.values()), way, "")
    if ranked is None:
        return Difference()
    shared = [seed for seed in mine if seed in theirs]
    paired = len(shared) == min(len(mine), len(theirs))
    x, y = (np.array([of[seed] for seed in (shared if paired else of)]) for of in (mine, theirs))
    finite = [values[np.isfinite(values)] for values in (x, y)]
    effect = float(finite[0].mean() - finite[1].mean()) if all(map(len, finite)) else None
    whole = one.merit(way)[0] and other.merit(way)[0] and min(len(x), len(y)) > 2
    varies = (np.ptp(x - y) if paired else max(np.ptp(x), np.ptp(y))) if whole else 0.0
    if effect is None or varies <= _ROUNDING * max(np.abs(x).max(), np.abs(y).max()) or not whole:
        return Difference(effect, "ranks", p=ranked.p, verdict="better" if ranked.probability > 0.5 else "worse")
    test = stats.ttest_rel(x, y) if paired else stats.ttest_ind(x, y, equal_var=False)
    low, high = map(float, test.confidence_interval(0.95))
    verdict: Literal["better", "worse"] = "better" if (effect > 0) == (way == "max") else "worse"
    name: Literal["paired", "Welch"] = "paired" if paired else "Welch"
    return Difference(effect, name, low, high, len(shared) * paired, float(test.pvalue), verdict)
