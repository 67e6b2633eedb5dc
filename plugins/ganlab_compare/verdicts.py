"""The verdicts of a comparison, in words: what is real, what may be chance, how many runs would settle it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ganlab.commands import listed
from ganlab_compare.configurations import Configuration
from ganlab_compare.ranking import LEVEL, MOST_SEEDS, POWER, least_runs
from ganlab_compare.statistics import Improvement
from ganlab_compare.warnings import last_value

RULE = (
    f"The rule: a difference is called real if chance gives one as large at most once in {1 / LEVEL:.0f} times "
    f"(p <= {LEVEL:g}), by the exact two-sided test of Mann and Whitney, with p multiplied by the number of "
    "differences looked at: all pairs of rows, or with --against all other rows. * marks the best mean where every "
    "other row is worse by this rule. Seeds to settle: those that find a difference of the size seen in about "
    f"{POWER:.0%} of cases."
)


def verdicts(
    rows: Sequence[Configuration],
    tags: Sequence[str],
    improvements: Mapping[tuple[str, str], Improvement],
    leading: Mapping[str, str],
) -> dict[str, str]:
    """The conclusions that runs permit on each metric.

    Args:
        rows: The configurations.
        tags: The metrics, each with a direction.
        improvements: By (label, tag).
        leading: The configurations that are better than all others beyond chance, by tag.

    Returns:
        A text of a few sentences by tag; none for a metric that fewer than two configurations have.
    """
    if len(rows) < 2:
        return {}
    texts = {}
    for tag in tags:
        runs = {one.label: sum(last_value(run, tag) is not None for run in one.runs) for one in rows}
        of_metric = {label: one for (label, of), one in improvements.items() if of == tag}
        sentences = list(_sentences(of_metric, runs, leading.get(tag)))
        texts[tag] = " ".join(sentences)
    return texts


def in_brief(better: Improvement) -> str:
    """A verdict for a cell: `worse, p 0.0079`, `open, p 0.33: 4 seeds`."""
    p = f"p {min(1.0, better.p * better.comparisons):.2g}"
    if better.verdict != "open":
        return f"{better.verdict}, {p}"
    return f"open, {p}" + (f": {_number(better.seeds)} seeds" if better.seeds else "")


def _sentences(of_metric: Mapping[str, Improvement], runs: Mapping[str, int], leader: str | None) -> Iterator[str]:
    if not of_metric:
        least = least_runs(len(runs) * (len(runs) - 1) // 2)
        yield (
            "Nothing can be concluded: with fewer than two runs that have it on a side, chance is unknown. Train at "
            f"least {least} seeds of each: with fewer even complete separation may be chance."
        )
        return
    against = next(iter(of_metric.values())).against
    if leader is not None:
        yield f"{leader} is best: every other row is worse, beyond chance."
    for verdict in ("better", "worse"):
        settled = [label for label, one in of_metric.items() if one.verdict == verdict]
        if settled and not (leader == against and verdict == "worse"):
            yield f"{verdict.capitalize()} than {against}, beyond chance: {listed(settled)}."
    unsettled = {label: one for label, one in of_metric.items() if one.verdict == "open"}
    hopeless = [label for label, one in unsettled.items() if one.seeds and one.comparisons * one.smallest > LEVEL]
    for count in dict.fromkeys(runs[label] for label in hopeless):
        alike = [label for label in hopeless if runs[label] == count]
        one = unsettled[alike[0]]
        times = f", times {one.comparisons} differences looked at" if one.comparisons > 1 else ""
        yield (
            f"Whether {listed(alike)} {'differs' if len(alike) == 1 else 'differ'} from {against} may be chance: with "
            f"{count} and {runs[against]} runs even complete separation has p = {one.smallest:.2g}{times}. At least "
            f"{least_runs(one.comparisons)} seeds of each are needed."
        )
    chance = [label for label, one in unsettled.items() if one.seeds and label not in hopeless]
    if chance:
        yield f"May be chance: the difference of {listed(chance)} from {against}."
    wanted = {label: one.seeds for label, one in unsettled.items() if one.seeds}
    if wanted:
        numbers = listed([f"{_number(seeds)} of {label}" for label, seeds in wanted.items()])
        yield f"Seeds of each that would settle this difference: {numbers}, and as many of {against}."
    single = [label for label in runs if label not in of_metric and label != against]
    if single:
        yield f"Nothing can be concluded of {listed(single)}: with fewer than two runs that have it, chance is unknown."
    alike = [label for label, one in unsettled.items() if one.seeds is None]
    if alike:
        yield f"No difference from {against} is seen: {listed(alike)}."


def _number(seeds: int | None) -> str:
    return f"more than {MOST_SEEDS}" if seeds is not None and seeds > MOST_SEEDS else str(seeds)
