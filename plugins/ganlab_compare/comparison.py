"""Compares runs: one row per configuration."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from ganlab.commands import several
from ganlab.errors import MissingDependencyError, RunError
from ganlab.lazy import require
from ganlab.runs import METRICS, Scalar, at_address, why_unreadable
from ganlab_compare.configurations import (
    Configuration,
    common_settings,
    configurations,
    pooled,
    pooled_sentence,
    reference,
)
from ganlab_compare.loaded_runs import RunSummary, read_runs, with_rows, without_reruns
from ganlab_compare.metric_rows import Reader, read_series
from ganlab_compare.metrics import Metric, default_metrics, left_out, measured_apart, named_metrics
from ganlab_compare.statistics import Estimate, Improvement, estimate, improvement
from ganlab_compare.verdicts import verdicts
from ganlab_compare.warnings import last_value, states

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, repr=False)
class Comparison:
    """Configurations side by side.

    Attributes:
        configurations: The rows.
        differing: The settings in which they differ, by full name: the columns.
        common: The settings that are the same wherever they apply.
        metrics: The metrics that are compared.
        estimates: The mean of the last values by (label, tag); no entry if no run has a finite one.
        best: The mean of the best values by (label, tag); only for metrics with a direction.
        improvement: Over the metric's reference configuration by (label, tag); only for metrics with a direction.
        leading: The configuration that is better than every other beyond chance, by tag; no entry if none is.
        verdicts: The conclusions that these runs permit, in sentences, by tag; only for metrics with a direction.
        problems: Caveats, in sentences: runs left out, unfinished, diverged or pooled.
    """

    configurations: tuple[Configuration, ...]
    differing: tuple[str, ...]
    common: dict[str, Scalar]
    metrics: tuple[Metric, ...]
    estimates: dict[tuple[str, str], Estimate]
    best: dict[tuple[str, str], Estimate]
    improvement: dict[tuple[str, str], Improvement]
    leading: dict[str, str]
    verdicts: dict[str, str]
    problems: tuple[str, ...]

    def winner(self, metric: Metric) -> str | None:
        """The configuration with the best mean, which may be chance; None if none has a value."""
        return _best(self.configurations, metric.tag, str(metric.direction), self.estimates)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(one.label for one in self.configurations)}>"

    def frame(self) -> pandas.DataFrame:
        """One row per configuration in a frame of pandas, which must be installed, with the columns of `to_csv`."""
        return require("pandas").DataFrame(self.rows()).set_index("configuration")

    def _repr_html_(self) -> str | None:
        """Settings and last values as a table for notebooks, where pandas is installed; else None."""
        try:
            frame = self.frame()
        except MissingDependencyError:
            return None
        last = [f"{metric.tag} last {name}" for metric in self.metrics for name in ("mean", "low", "high")]
        return cast("str", frame[[*self.differing, "runs", *last]]._repr_html_())

    def rows(self) -> list[dict[str, Any]]:
        """The cells of every configuration by the name of the column, as `to_csv` has them."""
        return [self._cells(one) for one in self.configurations]

    def _cells(self, one: Configuration) -> dict[str, Any]:
        cells: list[tuple[str, Any]] = [("configuration", one.label)]
        cells += [(name, one.settings.get(name)) for name in self.differing]
        cells += [("runs", len(one.runs)), ("unfinished", len(one.unfinished)), ("diverged", len(one.diverged))]
        cells += [("unhealthy", len(one.unhealthy)), ("warnings", one.warnings), ("changed", len(one.changed))]
        cells += [("wall_seconds", one.wall_seconds), ("steps_per_second", one.steps_per_second)]
        for metric in self.metrics:
            key = (one.label, metric.tag)
            last = self.estimates.get(key)
            for name in ("mean", "low", "high", "method", "n", "iqm"):
                cells.append((f"{metric.tag} last {name}", getattr(last, name, None)))
            if metric.direction:
                best, better = self.best.get(key), self.improvement.get(key)
                for name in ("mean", "low", "high", "method", "n"):
                    cells.append((f"{metric.tag} best {name}", getattr(best, name, None)))
                for name in ("probability", "low", "high", "against", "p", "comparisons", "verdict", "seeds"):
                    cells.append((f"{metric.tag} improvement {name}", getattr(better, name, None)))
        return dict(cells)


def compare(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    by: str | Sequence[str] = (),
    metrics: str | Sequence[str] = (),
    against: str | None = None,
) -> Comparison:
    """Compares runs, including those in progress. TensorFlow is not imported, and nothing in a run is executed.

    Args:
        paths: Run directories, folders of them (for example a sweep's), patterns such as `runs/*/baseline-*`, or
            addresses of mirrors; one of these, or several. So are settings and metrics.
        by: The settings to group by, in full or in short (`weight`); none for all of them.
        metrics: Tags or their ends (`modes`), each optionally followed by `:max` or `:min` for the better direction;
            none for the evaluators' figures and the critic's Wasserstein estimate.
        against: The reference for improvement, by its label or words of it; None for each metric's best.

    Returns:
        The comparison. Its problems list the runs that could not be read.

    Raises:
        RunError: A path does not exist, or there is nothing to compare.
        ConfigError: A setting, metric or configuration is unknown, or an argument has another type.
    """
    by, metrics = several.texts(by, "by"), several.texts(metrics, "metrics")
    with contextlib.ExitStack() as stack:
        opened = [(at_address(path, "list"), path) for path in several.values(paths)]
        here = [stack.enter_context(at)[0] if at else path for at, path in opened]
        against = None if against is None else " ".join(several.texts(against, "against"))
        taken = several.paths(here[0] if len(here) == 1 else here, "paths")
        return compare_runs(*read_runs(taken), by=by, metrics=metrics, against=against)


def compare_runs(
    runs: Sequence[RunSummary],
    problems: Sequence[str] = (),
    *,
    by: Sequence[str] = (),
    metrics: Sequence[str] = (),
    against: str | None = None,
    read: Reader = read_series,
) -> Comparison:
    """Compares runs that have been read, like `compare`.

    Args:
        runs: The runs, from their run.json.
        problems: Sentences on those that could not be read.
        by: As for `compare`.
        metrics: As for `compare`.
        against: As for `compare`.
        read: Reads metrics of a metrics.jsonl. Of each, best and last values are used.

    Raises:
        RunError: There is nothing to compare.
        ConfigError: A setting, metric or configuration is unknown.
    """
    chosen, unshown = (named_metrics(metrics, runs), ()) if metrics else default_metrics(runs)
    runs, unreadable = _with_rows(runs, chosen, read)
    runs, reruns = without_reruns(runs)  # of those that can be read
    rows, columns = configurations(runs, by)
    wanted = None if against is None else reference(against, rows)
    estimates = dict(_estimates(rows, chosen, last_value))
    directed = [metric for metric in chosen if metric.direction]
    better = dict(_improvements(rows, directed, estimates, wanted))
    leading = dict(_leading(rows, directed, estimates))
    mixed = pooled(rows) if by else []  # otherwise runs of a row differ in the seed alone
    return Comparison(
        configurations=rows,
        differing=columns,
        common=common_settings(runs, columns),
        metrics=chosen,
        estimates=estimates,
        best=dict(_estimates(rows, directed, lambda run, tag: run.best.get(tag))),
        improvement=better,
        leading=leading,
        verdicts=verdicts(rows, [metric.tag for metric in directed], better, leading),
        problems=(
            *problems,
            *unreadable,
            *reruns,
            *([pooled_sentence(mixed)] if mixed else []),
            *([left_out(unshown)] if unshown else []),
            *measured_apart(columns),
            *states(rows, [metric.tag for metric in chosen]),
        ),
    )


def _with_rows(
    runs: Sequence[RunSummary], metrics: Sequence[Metric], read_rows: Reader
) -> tuple[list[RunSummary], list[str]]:
    directions: dict[str, str | None] = {metric.tag: metric.direction for metric in metrics}
    read, problems = [], []
    for run in runs:
        try:
            read.append(with_rows(run, directions, read_rows))
            if run.last and not (run.path / METRICS).exists():
                problems.append(f"{run.name} has no {METRICS}: its best values are its last ones.")
        except Exception as error:  # of one run, which must not hide the others
            problems.append(f"Left out: {why_unreadable(run.path, error)}")
    if not read:
        raise RunError("\n".join(problems))
    return read, problems


def _estimates(
    rows: Sequence[Configuration], metrics: Sequence[Metric], value: Callable[[RunSummary, str], float | None]
) -> Iterator[tuple[tuple[str, str], Estimate]]:
    for one in rows:
        for metric in metrics:
            values = _known(value(run, metric.tag) for run in one.runs)
            if (estimated := estimate(values, limits_of_runs(one.runs, metric.tag))) is not None:
                yield (one.label, metric.tag), estimated


def limits_of_runs(runs: Sequence[RunSummary], tag: str) -> tuple[float, float]:
    """The least and the largest value that a metric can have in any of the runs that have it."""
    free = (-math.inf, math.inf)
    lows, highs = zip(*([run.limits.get(tag, free) for run in runs if tag in run.last] or [free]), strict=True)
    return min(lows), max(highs)


def _improvements(
    rows: Sequence[Configuration],
    metrics: Sequence[Metric],
    estimates: dict[tuple[str, str], Estimate],
    wanted: str | None,
) -> Iterator[tuple[tuple[str, str], Improvement]]:
    for metric in metrics:
        way, tag = str(metric.direction), metric.tag
        values = _last_values(rows, tag)
        # A row of one run settles nothing: it is no reference, and none of the differences looked at.
        repeated = [one for one in rows if len(values.get(one.label, ())) > 1]
        against = wanted or _best(repeated, tag, way, estimates)
        if against is None:
            continue
        # A reference that was chosen for its mean was compared with all: every pair of rows is a difference looked at.
        comparisons = len(repeated) - 1 if wanted else math.comb(len(repeated), 2)
        for label, mine in values.items():
            compared = improvement(mine, values.get(against, []), way, against, comparisons)
            if compared and label != against:
                yield (label, tag), compared


def _leading(
    rows: Sequence[Configuration], metrics: Sequence[Metric], estimates: dict[tuple[str, str], Estimate]
) -> Iterator[tuple[str, str]]:
    for metric in metrics:
        values = _last_values(rows, metric.tag)
        best = _best(rows, metric.tag, str(metric.direction), estimates)
        if best is None or len(values) < 2:
            continue
        against = [
            improvement(values[best], theirs, str(metric.direction), label, math.comb(len(values), 2))
            for label, theirs in values.items()
            if label != best
        ]
        if all(one is not None and one.verdict == "better" for one in against):
            yield metric.tag, best


def _last_values(rows: Sequence[Configuration], tag: str) -> dict[str, list[float]]:
    """Last values by label, for configurations that have any."""
    values = {one.label: _known(last_value(run, tag) for run in one.runs) for one in rows}
    return {label: some for label, some in values.items() if some}


def ranked(
    rows: Sequence[Configuration], tag: str, way: str, estimates: dict[tuple[str, str], Estimate]
) -> tuple[Configuration, ...]:
    """Rows by their mean; after them those with a run that lacks a finite value, and last those with no value.

    A mean without those runs is one of survivors.
    """

    def place(one: Configuration) -> tuple[bool, bool, float]:
        estimate = estimates.get((one.label, tag))
        if estimate is None:
            return True, True, 0.0
        return False, estimate.n < len(one.runs), estimate.mean * (-1 if way == "max" else 1)

    return tuple(sorted(rows, key=place))


def _best(rows: Sequence[Configuration], tag: str, way: str, estimates: dict[tuple[str, str], Estimate]) -> str | None:
    """The configuration with the best mean; None if none has a value."""
    return next((one.label for one in ranked(rows, tag, way, estimates) if (one.label, tag) in estimates), None)


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
