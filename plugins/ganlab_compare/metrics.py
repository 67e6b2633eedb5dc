"""Selects the metrics to compare, and which of their values are better."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast, get_args

from ganlab.commands import Direction, listed
from ganlab.errors import ConfigError
from ganlab.runs import METRICS
from ganlab.telemetry import logged_tags
from ganlab_compare.labels import resolve
from ganlab_compare.loaded_runs import RunSummary

_EVALUATION = "evaluation/"
_ESTIMATE = "critic/wasserstein"

# The prefix of scores of real examples, beside those of the generator: `real_against_real`.
_COMPANION = "real_"

_COLUMNS = 6

# Settings of evaluators and of their features; also with a scope before the kind.
_MEASURING = re.compile(r"(^|/)(evaluators|features)[./]")


@dataclass(frozen=True)
class Metric:
    """A metric that is compared.

    Attributes:
        tag: Its name, as in metrics.jsonl.
        direction: Which values are better; None if that is unknown: then it has no best and no improvement.
    """

    tag: str
    direction: Direction | None


def default_metrics(runs: Sequence[RunSummary]) -> tuple[tuple[Metric, ...], tuple[str, ...]]:
    """The evaluators' figures and the critic's estimate, six at most.

    Args:
        runs: The runs to compare.

    Returns:
        The metrics, and the tags of figures beyond six.
    """
    tags = dict.fromkeys(tag for run in runs for tag in run.last)
    figures = [tag for tag in tags if tag.startswith(_EVALUATION) and not _last_part(tag).startswith(_COMPANION)]
    estimate = [_ESTIMATE] if _ESTIMATE in tags else []
    room = _COLUMNS - len(estimate)
    chosen = figures[:room] + estimate or [tag for tag in tags if "/" in tag][:_COLUMNS]
    return tuple(Metric(tag, _better(tag, runs)) for tag in chosen), tuple(figures[room:])


def named_metrics(names: Sequence[str], runs: Sequence[RunSummary]) -> tuple[Metric, ...]:
    """The metrics that were requested.

    Args:
        names: Tags or endings of them, each optionally followed by `:max` or `:min`.
        runs: The runs to compare.

    Raises:
        ConfigError: No run has such a metric, an ending matches several, or there is no such direction.
    """
    by_tag: dict[str, Metric] = {}
    for text in names:
        metric = _requested(text, runs)
        by_tag[metric.tag] = metric
    return tuple(by_tag.values())


def _requested(text: str, runs: Sequence[RunSummary]) -> Metric:
    name, colon, way = text.rpartition(":")
    if way in get_args(Direction):
        return Metric(_find(name, runs), cast(Direction, way))
    try:
        tag = _find(text, runs)  # a tag may have a colon of its own
    except ConfigError:
        if not colon:
            raise
        _find(name, runs)
        raise ConfigError(
            f"The metric {text!r} ends in {way!r}: after its colon must be max or min, for the values that are better. "
            f"Write {name}:max or {name}:min."
        ) from None
    return Metric(tag, _better(tag, runs))


def _better(tag: str, runs: Iterable[RunSummary]) -> Direction | None:
    """The direction that runs with such a figure declare; None if they do not agree."""
    ways = {run.better[tag] for run in runs if tag in run.better}
    return ways.pop() if len(ways) == 1 else None


def _find(name: str, runs: Sequence[RunSummary]) -> str:
    try:
        return resolve(name, {tag for run in runs for tag in run.last}, "metric")
    except ConfigError:
        # Some, for example bounds, are only in metrics.jsonl, which takes longer to read.
        return resolve(name, {tag for run in runs for tag in (*run.last, *logged_tags(run.path / METRICS))}, "metric")


def left_out(tags: Sequence[str]) -> str:
    """The note on figures that the table has no room for."""
    plural = "figures are" if len(tags) > 1 else "figure is"
    return f"{len(tags)} more {plural} not shown: {listed(tags, 8)}. Choose with --metric."


def measured_apart(settings: Iterable[str]) -> Iterator[str]:
    """The note if configurations differ in how they are measured, so that figures are not comparable.

    Args:
        settings: The settings in which the configurations differ.
    """
    differing = [name for name in settings if _MEASURING.search(name)]
    if differing:
        yield (
            f"Configurations differ in {listed(differing)}, which evaluators measure by: their figures are not "
            "comparable between such rows. Measure all alike with ganlab evaluate RUN --save."
        )


def _last_part(tag: str) -> str:
    return tag.rpartition("/")[2]
