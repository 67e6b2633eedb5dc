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
from ganlab.runs import Scalar, differing, setting
from ganlab_compare.brief import main_metric
from ganlab_compare.comparison import Comparison, limits_of_runs
from ganlab_compare.configurations import Configuration, configurations, reference
from ganlab_compare.doors import rendered
from ganlab_compare.labels import short_label, shortened
from ganlab_compare.loaded_runs import RunSummary
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
# What a comparison's notes begin with, or hold, that count for a paper too: its other ones are of its own rows.
_CAVEATS = re.compile(r"Left out: | left out: a rerun | unfinished: | changed midway: ")
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

    Where rows have three seeds, and finite figures that vary, the test is Student's over shared seeds if these are at
    least three and half of the smaller row's, else Welch's. Otherwise it is that of Mann and Whitney, "ranks", in which
    a figure that is not finite is worse than all others.
    """

    effect: float | None = None  # of the runs that are tested; None where one has no finite figure
    test: Literal["paired", "Welch", "ranks"] | None = None  # None for too few seeds
    low: float | None = None  # the 95% interval; none for ranks
    high: float | None = None
    pairs: int = 0
    superiority: float | None = None  # the probability that a run is better than one of the other row; for ranks
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
    left_out: tuple[str, ...]  # tasks, rows and settings without figures of all that is compared


@dataclass(frozen=True)
class Paper:
    """The tables, the settings that name rows, those tuned for each row with the values tried, and caveats."""

    tables: tuple[Table, ...]
    columns: tuple[str, ...]
    tuned: dict[str, dict[str, tuple[Scalar, ...]]]
    notes: tuple[str, ...]

    def text(self, language: Literal["markdown", "latex"]) -> str:
        """The tables and the sentences that may be written of them; those in LaTeX need the package booktabs."""
        helpers = {one.__name__: one for one in (counted, interval, level_text, listed, shortened)}
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
    """A setting tried for a row, with its figures of each task by seed; those of runs that diverged are not finite."""

    runs: Configuration
    tasks: tuple[dict[str | int, float], ...]

    @property
    def seeds(self) -> dict[str | int, float]:
        """The mean over tasks by seed, of seeds that all tasks have; NaN for each with a figure that is not finite."""
        shared = [seed for seed in self.tasks[0] if all(seed in task for task in self.tasks)]
        every = {seed: [task[seed] for task in self.tasks] for seed in shared}
        return {seed: float(np.mean(of)) if np.isfinite(of).all() else math.nan for seed, of in every.items()}

    def merit(self, way: str) -> tuple[bool, float]:
        """A key to sort by: settings without runs that diverged are best, then those with the best mean over tasks."""
        finite = [[value for value in task.values() if math.isfinite(value)] for task in self.tasks]
        means = [np.mean(values) for values in finite if values]
        whole = all(len(values) == len(task) for values, task in zip(finite, self.tasks, strict=True))
        return whole, float(np.mean(means)) * (1 if way == "max" else -1) if means else -math.inf


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
        ConfigError: A setting or row is unknown, or which values are better; rows share no task, or repeat a seed.
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
    lacking = [f" without {table.metric.tag}: " for table in tables]
    notes = [note for note in comparison.problems if _CAVEATS.search(note) or any(text in note for text in lacking)]
    return Paper(tuple(tables), columns, tuned, (*notes, *measured_apart(names)))


def _tuned(row: Configuration, tasks: Sequence[Configuration]) -> dict[str, tuple[Scalar, ...]]:
    """The settings in which a row's runs of one task differ, with all their values; those of tasks are not tuned."""
    of_tasks = [{run.path for run in task.runs} for task in tasks]
    names = [name for of in of_tasks for name in differing(run.settings for run in row.runs if run.path in of)]
    values = {name: {value for run in row.runs if (value := _value(run, name)) is not None} for name in names}
    return {name: tuple(sorted(of, key=lambda value: (isinstance(value, str), value))) for name, of in values.items()}


def _value(run: RunSummary, name: str) -> Scalar | None:
    """A run's value of a setting, and "None" if it is not set; None if the run lacks the part whose setting it is."""
    part = name.rpartition("/")[2].rpartition(".")[0]
    value = setting(run.settings, name)
    has = value is not None or not part or any(f"/{key}".find(f"/{part}.") >= 0 for key in run.settings)
    return value if value is not None else "None" if has else None


def interval(one: Row | Difference) -> str:
    """An interval as tables show it; a dash for none."""
    return "-" if one.low is None or one.high is None else f"[{one.low:.3g}, {one.high:.3g}]"


def level_text(p: float) -> str:
    """A p-value with two digits, or as many as show on which side of the level it is."""
    texts = (f"{p:.{digits}g}" for digits in range(2, 18))
    return next(text for text in texts if (float(text) <= LEVEL) == (p <= LEVEL))


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
    figures = [{run.path: value for run in task.runs if (value := last_value(run, tag)) is not None} for task in tasks]

    def places(*of: Configuration) -> set[int]:
        paths = {run.path for one in of for run in one.runs}
        return {place for place, of_task in enumerate(figures) if paths & of_task.keys()}

    having = [found for of in tried.values() if (found := places(*of))]
    common = sorted(set.intersection(*having)) if having else []
    whole = {label: [one for one in of if places(one).issuperset(common)] for label, of in tried.items()}
    if not common or not any(tag in run.last for of in whole.values() for one in of for run in one.runs):
        raise ConfigError(f"--paper: rows share no task with {tag}. Give another --metric, or fewer runs.")
    left_out = [f"the task {task.label}" for place, task in enumerate(tasks) if place not in common]
    for label, of in whole.items():
        left_out += [f"{label} with {one.label}" for one in tried[label] if one not in of] if of else [label]
    limits = [limits_of_runs(tasks[place].runs, tag) for place in common]
    normalized = len(set(limits)) > 1 and all(-math.inf < low < high < math.inf for low, high in limits)
    scales = [(low, high - low) if normalized else (0.0, 1.0) for low, high in limits]
    covered = {run.path for place in common for run in tasks[place].runs}

    def figured(one: Configuration) -> _Setting:
        runs = {run.path: run for run in one.runs if run.path in covered}
        of_tasks: list[dict[str | int, float]] = [{} for _ in common]
        for of_task, place, (low, width) in zip(of_tasks, common, scales, strict=True):
            for path in filter(runs.__contains__, figures[place]):
                run = runs[path]
                seed = run.name if run.seed is None else run.seed
                if seed in of_task:
                    raise ConfigError(
                        f"--paper: {one.label or 'a row'} has two runs with seed {seed}: one has a setting that the "
                        "other lacks. Name a setting that tells them apart with --by, or give fewer runs."
                    )
                of_task[seed] = (figures[place][path] - low) / width
        return _Setting(replace(one, runs=tuple(runs.values())), tuple(of_tasks))

    settings = {label: [figured(one) for one in of] for label, of in whole.items() if of}
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
        tuple(left_out),
    )


def _row(label: str, best: _Setting, tried: Sequence[_Setting], way: str) -> Row:
    finite = [[value for value in task.values() if math.isfinite(value)] for task in best.tasks]
    strata = [np.array(values) for values in finite if values]
    several = sum(map(len, strata)) > 2 and any(len(values) > 1 for values in strata)
    low, high = bootstrap_intervals(*strata)[1] if several else (None, None)
    # A setting with a run that diverged is no better than the worst of the others.
    merits = [one.merit(way) for one in tried]
    worst = min([mean for whole, mean in merits if whole], default=math.nan)
    sign = 1 if way == "max" else -1
    names = dict.fromkeys(name for one in tried for name in one.runs.settings) if len(tried) > 1 else ()
    chosen = {name: value for name in names if (value := _value(best.runs.runs[0], name)) is not None}
    return Row(
        label,
        short_label(chosen, shortened(list(names))),
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
    fewer = min(len(mine), len(theirs))
    paired = len(shared) > 2 and 2 * len(shared) >= fewer
    x, y = (np.array([of[seed] for seed in (shared if paired else of)]) for of in (mine, theirs))
    finite = np.isfinite([*mine.values(), *theirs.values()]).all()
    varies = (np.ptp(x - y) if paired else max(np.ptp(x), np.ptp(y))) if finite else 0.0
    if fewer < 3 or not finite or varies <= _ROUNDING * max(np.abs(x).max(), np.abs(y).max()):
        effect = float(np.mean([*mine.values()]) - np.mean([*theirs.values()])) if finite else None
        verdict: Literal["better", "worse"] = "better" if ranked.probability > 0.5 else "worse"
        return Difference(effect, "ranks", None, None, 0, ranked.probability, ranked.p, verdict)
    test = stats.ttest_rel(x, y) if paired else stats.ttest_ind(x, y, equal_var=False)
    low, high = map(float, test.confidence_interval(0.95))
    effect = float(x.mean() - y.mean())
    verdict = "better" if (effect > 0) == (way == "max") else "worse"
    pairs = len(shared) * paired
    return Difference(effect, "paired" if paired else "Welch", low, high, pairs, None, float(test.pvalue), verdict)
