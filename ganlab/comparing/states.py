"""What to say of runs that have not ended, ended badly, or lack a value: they are counted and named, never dropped."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ganlab.comparing.configurations import Configuration
from ganlab.comparing.naming import listed
from ganlab.comparing.reading import ENDED, RunSummary


def last_value(run: RunSummary, tag: str) -> float | None:
    """A run's last value as it counts: NaN for every metric of a run that diverged, whose end is worth nothing."""
    return math.nan if run.status == "diverged" else run.last.get(tag)


def diverged(one: Configuration) -> list[RunSummary]:
    """Its runs that diverged."""
    return [run for run in one.runs if run.status == "diverged"]


def unfinished(one: Configuration) -> list[RunSummary]:
    """Its runs that are in progress or stopped short: `running`, `interrupted` or `failed`."""
    return [run for run in one.runs if run.status not in ENDED]


def states(found: Sequence[Configuration], tags: Sequence[str]) -> Iterator[str]:
    """What a reader has to know of configurations, in sentences.

    Args:
        found: The configurations.
        tags: The metrics that are shown.
    """
    for one in found:
        who = f" of {one.label}" if len(found) > 1 else ""
        if short := unfinished(one):
            told = listed([f"{run.name} {run.status} at step {run.step} of {run.steps}" for run in short])
            yield f"{_count(short, one)}{who} unfinished: {told}. What they have so far counts."
        if bad := diverged(one):
            told = listed([f"{run.name} at step {run.step}" for run in bad])
            yield (
                f"{_count(bad, one)}{who} diverged: {told}. Means are of the others; as to which is better, any other "
                "run is better than one that diverged."
            )
        for tag in tags:
            yield from _values(one, who, tag)


def _values(one: Configuration, who: str, tag: str) -> Iterator[str]:
    good = [run for run in one.runs if run.status != "diverged"]
    missing = [run for run in good if tag not in run.last]
    infinite = [run for run in good if not math.isfinite(run.last.get(tag, 0.0))]
    if missing and len(missing) < len(good):
        yield f"{_count(missing, one)}{who} without {tag}: {listed([run.name for run in missing])}."
    if infinite:
        told = listed([f"{run.name} has {run.last[tag]}" for run in infinite])
        yield f"{_count(infinite, one)}{who} with a {tag} that is not finite: {told}. The mean is of the others."


def _count(some: Sequence[RunSummary], one: Configuration) -> str:
    return f"{len(some)} of {len(one.runs)} run{'s' if len(one.runs) > 1 else ''}"
