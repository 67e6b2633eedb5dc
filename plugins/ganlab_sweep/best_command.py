"""`ganlab best`: a sweep's winner, what may be concluded, and the command that trains it again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

import ganlab
from ganlab import commands
from ganlab.commands import LocalPath, complete_folders, say, say_json
from ganlab.errors import ConfigError, RunError
from ganlab.files import line, new_file
from ganlab_sweep import COMPLETED, ENDED, Sweep, Trial, take_up
from ganlab_sweep.configurations import in_full
from ganlab_sweep.trial import plugin_options


def best_of(stored: Sweep, trials: Sequence[Trial], metric: str = "", output: Path | None = None) -> dict[str, Any]:
    """The configuration with the best mean, of those whose seeds are all completed, and the command with its file.

    One with a seed that has no finite value is the best only if all have such seeds.

    Raises:
        GanlabError: No configuration is completed, or it is not known which values of the metric are better.
    """
    request = stored.request
    left = {trial.configuration for trial in trials if trial.status != COMPLETED}
    runs = [trial.run for trial in trials if trial.configuration not in left]
    if not runs:
        how = " with --retry-failed" if all(trial.status in ENDED for trial in trials) else ""
        raise RunError(f"No configuration of {line(stored.path)} has completed all its seeds. Resume the sweep{how}.")
    asked = metric or (f"{request.objective}:{request.direction[:3]}" if request.objective else "")
    compared = ganlab.compare(runs, metrics=[asked] if asked else [])
    chosen = next((one for one in compared.metrics if one.direction), None)
    if chosen is None:
        tag = next((one.tag for one in compared.metrics), "critic/loss")
        raise ConfigError(f"Which values of {tag} are better is not known. Write --metric {tag}:min, or :max.")
    if (label := compared.winner(chosen)) is None:
        raise RunError(f"No completed trial of {line(stored.path)} has a finite value of {chosen.tag}.")
    row = next(row for row in compared.configurations if row.label == label)
    name, mean, next_seed = row.runs[0].path.parent.name, compared.estimates[label, chosen.tag], max(request.seeds) + 1
    seeds = f"{next_seed}..{max(request.seeds) + len(request.seeds)}" if len(request.seeds) > 1 else str(next_seed)
    words = ["ganlab", "sweep", "--gin", str(commands.shown(output or stored.gin(name))), "--seeds", seeds]
    others = [compared.improvement.get((one.label, chosen.tag)) for one in compared.configurations if one is not row]
    verdict, tied = _concluded(others) if any(others) else (compared.verdicts.get(chosen.tag), False)
    means = [of.mean for (of_row, tag), of in compared.estimates.items() if tag == chosen.tag and of_row != label]
    tied = tied or mean.mean in means
    concluded = [verdict or "No other configuration is completed: nothing is compared."]
    concluded += [problem for problem in compared.problems if "unhealthy" not in problem]
    if row.unhealthy:
        concluded.append(f"Of its runs, {row.health}: ganlab runs show {shlex.quote(str(row.unhealthy[0].path))}")
    if left:
        concluded.append(f"{commands.counted(len(left), 'configuration')} not completed, left out.")
    facts: dict[str, Any] = {"metric": chosen.tag, "direction": chosen.direction, "mean": mean.mean}
    facts |= {"low": mean.low, "high": mean.high, "method": mean.method}
    more: dict[str, Any] = {"seeds": mean.n, "tied": tied, "unhealthy": len(row.unhealthy), "concluded": concluded}
    more["command"] = shlex.join(words + plugin_options(request))
    return {"configuration": name, "settings": stored.info["configurations"][name]["settings"], **facts, **more}


def _concluded(others: Sequence[Any]) -> tuple[str, bool]:
    """The verdict on the best configuration from its comparisons with the others, and whether it may be tied.

    The best mean may be that of a row which most pairs of runs find worse: a mean depends on a few large values.
    """

    def of_others(some: Sequence[Any], verb: str = "") -> str:
        who = f"{len(some)} of {len(others)} others" if len(others) > 1 else "the other one"
        return f"{who} {'is' if len(some) == 1 else 'are'}{verb}" if verb else who

    known = [one for one in others if one]
    better, worse, even, ahead = (
        [one for one in known if (one.verdict, one.verdict == "open" and one.seeds is not None) == kind]
        for kind in (("better", False), ("worse", False), ("open", False), ("open", True))
    )
    words = []
    if worse and len(worse) == len(others):
        words.append(f"{'Every' if len(others) > 1 else 'The'} other configuration is worse, beyond chance.")
    elif worse and not even and not ahead:
        words.append(f"{of_others(worse, ' worse, beyond chance')}.")
    if better:
        words.append(f"In pairs of runs {of_others(better, ' better, beyond chance')}: look at the values.")
    if ahead:
        lead = "Its lead over" if all(one.probability <= 0.5 for one in ahead) else "The difference from"
        seeds = max(one.seeds for one in ahead)
        words.append(f"{lead} {of_others(ahead)} may be chance. At least {seeds} seeds of each would settle it.")
    if even:
        words.append(f"No difference from {of_others(even)} is seen.")
    if len(known) < len(others):
        words.append(f"Nothing can be concluded about {of_others([one for one in others if not one])}: too few values.")
    return " ".join(words), bool(better or even or ahead)


def in_words(best: Mapping[str, Any]) -> str:
    """The sentences that `ganlab best` prints."""
    kind = "range " if best["method"] == "range" else ""
    ends = "" if best["low"] is None else f" {kind}[{best['low']:.4g}, {best['high']:.4g}]"
    over = f", the mean over {best['seeds']} seeds" if best["seeds"] > 1 else ""
    marks = "".join(f", {mark}" for mark in ("tied", "unhealthy") if best[mark])
    first = f"Best {best['metric']} ({best['direction']}){marks}: {best['mean']:.4g}{ends}{over}, with "
    again = f"Train it again, on other seeds: {best['command']}"
    chosen = in_full(best["configuration"], best["settings"])
    return "\n".join(map(line, [f"{first}{chosen}.", *best["concluded"], again]))


@click.command("best")
@click.argument("sweep", metavar="SWEEP", type=LocalPath(), shell_complete=complete_folders("sweep.json"))
@click.option(
    "--metric",
    metavar="TAG",
    default="",
    help="The metric that decides, for example modes or critic/loss:min; by default the sweep's objective, or else the "
    "evaluators' first figure.",
)
@click.option("-o", "--output", metavar="FILE", type=LocalPath(dir_okay=False), help="Write its experiment file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
def best(sweep: Path, metric: str, output: Path | None, as_json: bool) -> None:
    """Names a sweep's best configuration, what may be concluded, and the command that trains it again.

    The best one has the best mean over the seeds, of the configurations whose seeds are all completed and have a finite
    value.

    \b
    ganlab best runs/my-sweep
    ganlab best runs/my-sweep --metric modes -o best.gin
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    stored = Sweep(sweep)
    found = best_of(stored, take_up(stored), metric, output)
    if output is not None:
        texts = {one.name: one.text for one in stored.configurations()}
        with new_file(output) as file:
            file.write(texts[found["configuration"]].encode())
    say_json(found) if as_json else say(in_words(found))
