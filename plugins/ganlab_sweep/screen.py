"""Displays a sweep: a live table at a terminal, a line for each change elsewhere, and a table at the end."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TextIO

from ganlab.commands import counted, in_time
from ganlab.files import line
from ganlab.runs import MARK, health_in_brief
from ganlab_sweep.engine import counts
from ganlab_sweep.trial import (
    COMPLETED,
    DIVERGED,
    FAILED,
    INTERRUPTED,
    PRUNED,
    QUEUED,
    RUNNING,
    TIMED_OUT,
    WAITING,
    Trial,
)

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

# A metric's name that is longer takes several lines.
_LONG = 24
_STYLES = {
    RUNNING: "cyan",
    WAITING: "yellow",
    COMPLETED: "green",
    FAILED: "red",
    DIVERGED: "red",
    TIMED_OUT: "red",
    QUEUED: "dim",
}
# Which trials a live table shows if it is higher than the screen: statuses in order of priority.
_WORTH = (RUNNING, WAITING, FAILED, DIVERGED, TIMED_OUT, INTERRUPTED, COMPLETED, PRUNED, QUEUED)


class LiveTable:
    """Shows a sweep on standard error while it runs; used as a context."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """Takes the stream to write to, by default standard error, and a clock in seconds."""
        self._stream, self._clock = stream or sys.stderr, clock
        self._began: tuple[float, float] | None = None  # the time of the first look, and the work done then
        self._live: Live | None = None
        self._printed: dict[str, str] = {}

    def __enter__(self) -> LiveTable:
        if self._stream.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(file=self._stream), auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live:
            self._live.stop()

    def show(self, trials: Sequence[Trial]) -> None:
        """Displays all trials as they are now."""
        if self._live:
            from rich.console import Group
            from rich.text import Text

            room = max(3, self._live.console.size.height - 4)  # the head, the summary and the prompt
            below = Text(f"{summary(trials)}{self._left(trials)}", style="dim")
            self._live.update(Group(table(_worth_seeing(trials, room)), below), refresh=True)
            return
        for trial in trials:
            if self._printed.get(trial.name, QUEUED) != trial.status:
                print(line(_line(trial)), file=self._stream, flush=True)
            self._printed[trial.name] = trial.status

    def _left(self, trials: Sequence[Trial]) -> str:
        """The time that the trials need, if they train on as fast as they have since the first look."""
        now, done = self._clock(), sum(map(_share, trials))
        began, before = self._began = self._began or (now, done)
        if not done > before or done == len(trials):
            return ""
        return f", about {in_time((now - began) * (len(trials) - done) / (done - before), units=1)} left"


def table(trials: Sequence[Trial]) -> Table:
    """A row for each trial: configuration, seed, status, step, metric, health, warnings, time."""
    from rich.table import Table
    from rich.text import Text

    view = Table(box=None, header_style="bold", pad_edge=False)
    view.add_column("configuration", overflow="fold", min_width=13)
    view.add_column("seed", justify="right", no_wrap=True)
    view.add_column("status", no_wrap=True)
    view.add_column("step", justify="right", no_wrap=True)
    view.add_column(Text(_heading(line(trials[0].tag))) if trials else "metric", justify="right", overflow="fold")
    view.add_column("health", overflow="fold")
    view.add_column("warnings", justify="right", no_wrap=True)
    view.add_column("time", justify="right", no_wrap=True)
    before = ""
    for trial in trials:
        cells = (  # spaces let a line end between settings
            "" if trial.configuration == before else re.sub(r",(?=\S)", ", ", trial.configuration),
            f"{trial.seed} {MARK}" if trial.changes else str(trial.seed),
            trial.status,
            _step(trial),
            _value(trial),
            "" if trial.health is None else health_in_brief(trial.health),
            str(len(trial.warnings)) if trial.warnings or trial.health is not None else "",
            in_time(trial.seconds) if trial.seconds else "",
        )
        before = trial.configuration
        # Text, not markup: names may have brackets.
        styles = ("", "", _STYLES.get(trial.status, ""), "", "", "red" if trial.health else "", "", "")
        view.add_row(*(Text(line(cell), style=style) for cell, style in zip(cells, styles, strict=True)))
    return view


def summary(trials: Sequence[Trial]) -> str:
    """Counts the trials by status: `2 completed, 1 running, 3 queued of 6 trials`."""
    sick = sum(bool(trial.health) for trial in trials)
    bad = f", {sick} unhealthy" if sick else ""
    statuses = ", ".join(f"{count} {status}" for status, count in counts(trials).items())
    return f"{statuses or 'none'} of {counted(len(trials), 'trial')}{bad}"


def as_data(trial: Trial) -> dict[str, Any]:
    """A trial as `--json` has it."""
    return {
        "configuration": trial.configuration,
        "seed": trial.seed,
        "status": trial.status,
        "step": trial.step,
        "steps": trial.steps,
        "metric": trial.tag,
        "value": trial.value,
        "seconds": round(trial.seconds, 3),
        "run": str(trial.run),
        "log": str(trial.log),
        "error": trial.error,
        "health": trial.health,
        "warnings": trial.warnings,
        "changes": [asdict(change) for change in trial.changes],
    }


def _line(trial: Trial) -> str:
    parts = [f"{trial.name}: {trial.status}"]
    if trial.status not in (QUEUED, RUNNING, WAITING):
        parts.append(f"at step {_step(trial)}" if trial.steps else "")
        parts.append(f"in {in_time(trial.seconds)}" if trial.seconds else "")
    text = " ".join(part for part in parts if part)
    if trial.error:
        return f"{text}: {trial.error}"
    if trial.status != COMPLETED:
        return text
    value = f", {trial.tag} {_value(trial)}" if trial.value is not None else ""
    return f"{text}{value}{f', unhealthy: {health_in_brief(trial.health)}' if trial.health else ''}"


def _share(trial: Trial) -> float:
    """The part of a trial's work that is done, from 0 to 1."""
    if trial.status in (RUNNING, WAITING, QUEUED):
        return trial.step / trial.steps if trial.steps else 0.0
    return 1.0


def _step(trial: Trial) -> str:
    return "" if trial.steps is None else f"{trial.step}/{trial.steps}"


def _value(trial: Trial) -> str:
    return "" if trial.value is None else f"{trial.value:.4g}"


def _heading(tag: str) -> str:
    """A metric's name above its column: a long one takes several lines, so that configurations keep their width."""
    return tag.replace("/", "/\n") if len(tag) > _LONG else tag


def _worth_seeing(trials: Sequence[Trial], room: int) -> list[Trial]:
    """As many trials as there is room for, in order: those at work first, then those with errors, then the ended."""
    if len(trials) <= room:
        return list(trials)
    chosen = sorted(range(len(trials)), key=lambda number: _WORTH.index(trials[number].status))[:room]
    return [trials[number] for number in sorted(chosen)]
