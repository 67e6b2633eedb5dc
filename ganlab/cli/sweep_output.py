"""What `ganlab sweep` prints: its plan, and how it ended."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ganlab.sweeps import Configuration, Sweep, Trial


def print_end(found: Sweep, trials: Sequence[Trial], *, interrupted: bool, as_json: bool) -> None:
    """Prints the trials of a sweep whose process ends, what went wrong, and the next command."""
    from ganlab.sweeps.screen import as_data, print_table, summary, table
    from ganlab.sweeps.trial import COMPLETED, DIVERGED, FAILED, PRUNED
    from ganlab.telemetry.jsonl import to_json

    failed = [trial for trial in trials if trial.status in (FAILED, DIVERGED)]
    again = f"ganlab sweep --resume {shlex.quote(shown(found.path))}"
    if as_json:
        data = {"sweep": str(found.path), "trials": [as_data(trial) for trial in trials]}
        click.echo(json.dumps(to_json(data), indent=2))
    else:
        print_table(table(trials))
        click.echo(f"\n{summary(trials)}. Sweep: {shown(found.path)}")
    for trial in trials:
        if trial.error:
            click.echo(f"{trial.name} {trial.status}: {trial.error} (log: {shown(trial.log)})", err=True)
    if interrupted or any(trial.status not in (COMPLETED, PRUNED, FAILED, DIVERGED) for trial in trials):
        click.echo(f"Go on with it: {again}", err=True)
    elif failed:
        click.echo(f"Try what failed again: {again} --retry-failed", err=True)
    elif not as_json:
        click.echo(f"Compare: ganlab compare {shlex.quote(shown(found.path))}")


def print_plan(
    asked: Mapping[str, Any],
    proposals: Sequence[Mapping[str, Any]],
    configurations: Sequence[Configuration],
    threads: int,
    *,
    as_json: bool,
) -> None:
    """Prints what a sweep would train."""
    seeds = asked["seeds"]
    if as_json:
        plan = [
            {"configuration": made.name, "settings": dict(made.settings), "seeds": seeds} for made in configurations
        ]
        click.echo(json.dumps({"jobs": asked["jobs"], "threads": threads, "configurations": plan}, indent=2))
        return
    for made in configurations:
        click.echo(made.name)
    said = ", ".join(map(str, seeds))
    if not configurations:
        what = f"up to {asked['budget']} configurations" if asked["budget"] else "configurations"
        click.echo(f"searches.{asked['search']} chooses {what} as results come in, seeds {said}.")
        return
    merged = len(proposals) - len(configurations)
    come = "combination comes" if merged == 1 else "combinations come"
    same = f" ({merged} {come} to the same experiment as another)" if merged else ""
    click.echo(
        f"\n{len(configurations) * len(seeds)} trials: {len(configurations)} configurations{same}, seeds {said}. "
        f"{asked['jobs']} at a time, threads: {threads} each."
    )


def shown(path: Path) -> str:
    """The path, relative to the working directory where it lies below it."""
    from ganlab.config import files

    return files.shown(path)
