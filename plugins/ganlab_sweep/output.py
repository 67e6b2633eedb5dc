"""Output of `ganlab sweep`: the plan before it and the results after it."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from ganlab import commands
from ganlab.commands import counted, say, say_json, table_console
from ganlab.errors import GanlabError
from ganlab.files import line
from ganlab.runs import MARK, changes_in_words, name_of_complaint
from ganlab_sweep import Configuration, Request, Sweep, Trial
from ganlab_sweep.best_command import best_of, in_words
from ganlab_sweep.configurations import in_full
from ganlab_sweep.request import Proposed
from ganlab_sweep.screen import as_data, summary, table
from ganlab_sweep.trial import COMPLETED, DIVERGED, FAILED, PRUNED, TIMED_OUT


def print_end(stored: Sweep, trials: Sequence[Trial], *, interrupted: bool, as_json: bool) -> None:
    """Prints a sweep's trials, problems and the next command when its process ends."""
    failed = [trial for trial in trials if trial.status in (FAILED, DIVERGED, TIMED_OUT)]
    file = Path(stored.request.plugin_file or "ganlab_plugins.py")
    plugin = [] if file.absolute() == Path("ganlab_plugins.py").resolve() else ["--plugin-file", shown(file)]
    again = shlex.join(["ganlab", "sweep", "--resume", shown(stored.path), *plugin])
    if as_json:
        say_json({"sweep": str(stored.path), "trials": [as_data(trial) for trial in trials]})
    else:
        table_console(120).print(table(trials))
        say(f"\n{summary(trials)}. Sweep: {shown(stored.path)}")
    for trial in trials:
        if trial.changes:
            changed = line(f"{MARK} {trial.name} changed midway, {changes_in_words(trial.changes)}")
            say(f"{changed}: its settings differ from those of its configuration.", err=True)
    for complaint in _complaints(trials):
        say(complaint, err=True)
    refused = [proposal.error for proposal in stored.proposals if proposal.error]
    if refused:
        proposals = f"{counted(len(refused), 'proposal')} of searches.{line(stored.request.search)}"
        say(f"{proposals} cannot be trained. The first: {line(refused[0])}", err=True)
    for trial in trials:
        if trial.error:
            say(f"{line(trial.name)} {trial.status}: {line(trial.error)} (log: {shown(trial.log)})", err=True)
    if interrupted or any(trial.status not in (COMPLETED, PRUNED, FAILED, DIVERGED, TIMED_OUT) for trial in trials):
        say(f"Resume it: {again}", err=True)
    elif failed:
        say(f"Retry failed trials: {again} --retry-failed", err=True)
    elif trials and not as_json:
        say(f"Compare: ganlab compare {shlex.quote(shown(stored.path))}")
    if not interrupted and not as_json and len({trial.configuration for trial in trials}) > 1:
        with contextlib.suppress(GanlabError):  # no metric says which is best
            say(in_words(best_of(stored, trials)))
            say(f"Its file: ganlab best {shlex.quote(shown(stored.path))} -o best.gin")


def _complaints(trials: Sequence[Trial]) -> Iterator[str]:
    """A line for each component that complains at the end of trials: the number of trials, and its first complaint."""
    groups: dict[str, dict[str, str]] = {}
    for trial in trials:
        for sentence in trial.health or ():
            groups.setdefault(name_of_complaint(sentence), {}).setdefault(trial.name, sentence)
    for name, by_trial in groups.items():
        trial_name, sentence = next(iter(by_trial.items()))
        trials_with_it, complaint = counted(len(by_trial), "trial"), line(sentence.removeprefix(f"{name}: "))
        yield f"Health: {line(name)} reports a problem in {trials_with_it}. In {line(trial_name)}: {complaint}"


def print_plan(
    request: Request,
    proposals: Sequence[Proposed],
    configurations: Sequence[Configuration],
    threads: int,
    *,
    as_json: bool,
) -> None:
    """Prints the trials that a sweep would train."""
    seeds = list(request.seeds)
    if as_json:
        plan = [{"configuration": one.name, "settings": dict(one.settings), "seeds": seeds} for one in configurations]
        say_json({"jobs": request.jobs, "threads": threads, "configurations": plan})
        return
    for one in configurations:
        say(line(in_full(one.name, one.settings)))
    of_seeds = f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}"
    if not configurations:
        number = f"up to {request.budget} configurations" if request.budget else "configurations"
        say(f"searches.{request.search} chooses {number} as results come in, {of_seeds}.")
        return
    merged = len(proposals) - len(configurations)
    give = "combination gives" if merged == 1 else "combinations give"
    same = f" ({merged} {give} the same experiment as another)" if merged else ""
    trials = counted(len(configurations) * len(seeds), "trial")
    say(
        f"\n{trials}: {counted(len(configurations), 'configuration')}{same}, {of_seeds}. {request.jobs} at a time, "
        f"threads: {threads} each."
    )


def shown(path: Path) -> str:
    """The path, relative to the working directory if it lies below it."""
    return line(commands.shown(path))
