"""`ganlab runs watch`: what trains now below a folder."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ganlab.commands import RunsPath, cell, in_time, say, say_json, table_console
from ganlab.errors import RunError
from ganlab.files import line
from ganlab_runs.watching import Progress, Watcher

if TYPE_CHECKING:
    from rich.table import Table


@click.command("watch")
@click.argument("folder", type=RunsPath("list"), default=Path("runs"))
@click.option("--metric", metavar="TAG", default="critic/loss", help="The metric to show; critic/loss by default.")
@click.option("--every", type=click.FloatRange(0.2, 3600), default=2.0, help="Seconds between two looks; 2 by default.")
@click.option("--once", is_flag=True, help="Look once and end.")
@click.option("--json", "as_json", is_flag=True, help="Look once and print a JSON list.")
def watch(folder: Path, metric: str, every: float, once: bool, as_json: bool) -> None:
    """Shows what trains now at or below FOLDER, by default runs/: step, speed, time left and a metric.

    Ends when nothing trains any more, or with Ctrl-C, which ends no run. Without a terminal it prints a line for each
    run at each look at which something changed.
    """
    if not folder.is_dir():
        raise RunError(f"There is no folder {line(folder)}. Give the folder that 'ganlab run --runs' wrote to.")
    watcher = Watcher(folder, metric)
    rows = watcher.look(wait=once or as_json)
    if as_json:
        say_json([as_data(row) for row in rows])
    elif not rows:
        say(f"Nothing trains at or below {line(folder)}.")
    elif once:
        table_console(120).print(table(rows, metric))
    else:
        _follow(watcher, rows, metric, every)


def as_data(row: Progress) -> dict[str, object]:
    """A row as `--json` has it."""
    return {
        "path": str(row.path),
        "status": row.status,
        "step": row.step,
        "steps": row.steps,
        "value": row.value,
        "steps_per_second": row.speed,
        "seconds_left": row.seconds_left,
    }


def table(rows: Sequence[Progress], metric: str) -> Table:
    """A row for each run."""
    from rich.table import Table

    made = Table(box=None, header_style="bold", pad_edge=False)
    made.add_column("run", overflow="fold", min_width=20)
    made.add_column("status", no_wrap=True)
    for name in ("step", "steps/s", "left", line(metric)):
        made.add_column(cell(name), justify="right", no_wrap=True)
    for row in rows:
        made.add_row(*(cell(line(text)) for text in (str(row.path), row.status, *_parts(row))))
    return made


def _parts(row: Progress) -> tuple[str, str, str, str]:
    training = row.status == "running"
    return (
        f"{row.step}/{row.steps}" if row.steps is not None else str(row.step),
        f"{row.speed:.3g}" if row.speed and training else "",
        in_time(row.seconds_left, units=1) if row.seconds_left is not None and training else "",
        "" if row.value is None else f"{row.value:.4g}",
    )


def _follow(watcher: Watcher, rows: Sequence[Progress], metric: str, every: float) -> None:
    if not sys.stdout.isatty():
        printed: dict[Path, tuple[int, str]] = {}
        while True:
            for row in rows:
                if printed.get(row.path) != (row.step, row.status):
                    printed[row.path] = (row.step, row.status)
                    step, speed, left, value = _parts(row)
                    more = [f"{speed} steps/s" if speed else "", f"{left} left" if left else "", f"{metric} {value}"]
                    said = ", ".join(part for part in more if part)
                    say(line(f"{row.path}: {row.status}, step {step}, {said}"))
            if all(row.status != "running" for row in rows):
                return
            time.sleep(every)
            rows = watcher.look()
    from rich.live import Live

    with Live(table(rows, metric), console=table_console(120), auto_refresh=False) as live:
        while any(row.status == "running" for row in rows):
            time.sleep(every)
            rows = watcher.look()
            live.update(table(rows, metric), refresh=True)
