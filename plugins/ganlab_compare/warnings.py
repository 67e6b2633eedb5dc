"""Notes on runs that have not ended, ended badly, or lack a value: they are counted and listed, never dropped."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ganlab.commands import listed
from ganlab.runs import UNNAMED, changes_in_words, name_of_complaint
from ganlab_compare.configurations import Configuration
from ganlab_compare.loaded_runs import RunSummary


def last_value(run: RunSummary, tag: str) -> float | None:
    """A run's last value as it counts: NaN for every metric of a run that diverged, whose end means nothing."""
    return math.nan if run.status == "diverged" else run.last.get(tag)


def _ended(run: RunSummary) -> str:
    return "killed while running" if run.status == "killed" else run.status


def states(rows: Sequence[Configuration], tags: Sequence[str]) -> Iterator[str]:
    """The caveats on configurations, in sentences.

    Args:
        rows: The configurations.
        tags: The metrics that are shown.
    """
    for one in rows:
        who = f" of {one.label}" if len(rows) > 1 else ""
        if short := one.unfinished:
            names = listed([f"{run.name} {_ended(run)} at step {run.step} of {run.steps}" for run in short])
            yield f"{_count(short, one)}{who} unfinished: {names}. What they have so far counts."
        if bad := one.diverged:
            names = listed([f"{run.name} at step {run.step}" for run in bad])
            yield (
                f"{_count(bad, one)}{who} diverged: {names}. Means are of the others; as to which is better, any other "
                "run is better than one that diverged."
            )
        yield from _changes(one, who, tags)
        yield from _health(one, who)
        for tag in tags:
            yield from _values(one, who, tag)


def _changes(one: Configuration, who: str, tags: Sequence[str]) -> Iterator[str]:
    if not (runs := one.changed):
        return
    names = listed([f"{run.name} {changes_in_words(run.changes)}" for run in runs])
    yield (
        f"{_count(runs, one)}{who} changed midway: {names}. The settings shown are the last ones; up to there "
        f"{'they' if len(runs) > 1 else 'it'} had the others."
    )
    for tag in tags:
        if before := [run for run in one.best_before_change(tag) if tag in run.best]:
            names = listed([f"{run.name} at step {run.best_steps[tag]}" for run in before if tag in run.best_steps])
            yield f"{_count(before, one)}{who} with a best {tag} from before the change: {names}."


def _health(one: Configuration, who: str) -> Iterator[str]:
    """The complaints of its runs, and their other warnings, by the name of the check."""
    complaints = [(run, sentence) for run in one.runs for sentence in run.health or ()]
    yield from _named(one, who, complaints, "unhealthy")
    # A warning of what is still wrong would repeat it.
    listed_already = {(run.path, name_of_complaint(sentence)) for run, sentence in complaints}
    past = [(run, sentence) for run in one.runs for sentence in run.warnings]
    past = [(run, sentence) for run, sentence in past if (run.path, name_of_complaint(sentence)) not in listed_already]
    yield from _named(one, who, past, "warned")


def _named(one: Configuration, who: str, sentences: Sequence[tuple[RunSummary, str]], word: str) -> Iterator[str]:
    groups: dict[str, list[tuple[RunSummary, str]]] = {}
    for run, sentence in sentences:
        groups.setdefault(name_of_complaint(sentence), []).append((run, sentence))
    for name, group in groups.items():
        runs = list({run.path: run for run, _ in group}.values())
        text = group[0][1].removeprefix(f"{name}: ")
        by = "" if name == UNNAMED else f", by {name}"
        of = f" Of {runs[0].name}:" if len(runs) > 1 else ""
        yield f"{_count(runs, one)}{who} {word}{by}: {listed([run.name for run in runs])}.{of} {text}"


def _values(one: Configuration, who: str, tag: str) -> Iterator[str]:
    good = [run for run in one.runs if run.status != "diverged"]
    missing = [run for run in good if tag not in run.last]
    infinite = [run for run in good if not math.isfinite(run.last.get(tag, 0.0))]
    if missing and len(missing) < len(good):
        yield f"{_count(missing, one)}{who} without {tag}: {listed([run.name for run in missing])}."
    if infinite:
        names = listed([f"{run.name} has {run.last[tag]}" for run in infinite])
        others = " The mean is of the others." if len(infinite) < len(good) else ""
        yield f"{_count(infinite, one)}{who} whose {tag} is not finite: {names}.{others}"


def _count(some: Sequence[RunSummary], one: Configuration) -> str:
    return f"{len(some)} of {len(one.runs)} run{'s' if len(one.runs) > 1 else ''}"
