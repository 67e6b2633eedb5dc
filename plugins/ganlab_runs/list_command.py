"""`ganlab runs list`: the runs below a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ganlab.commands import RunsPath, cell, in_bytes, in_time, say, say_json, table_console
from ganlab.errors import RunError
from ganlab.files import line
from ganlab.runs import MARK, STATUSES, health_in_brief
from ganlab_runs.listing import Listed, listed

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# The most characters in a cell: nobody reads a longer name.
_LONGEST = 300
# Columns of a table that is piped: a row for each run, with names in full.
_WIDEST = 10_000


@click.command("list")
@click.argument("folder", type=RunsPath("list"), default=Path("runs"))
@click.option("--status", type=click.Choice(STATUSES), help="List only runs with this status.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list instead.")
def list_command(folder: Path, status: str | None, as_json: bool) -> None:
    """Lists the runs at or below FOLDER, by default runs/.

    A run is "killed" if its run.json says "running" but no process trains it: where another machine trained it, finding
    out takes up to 15 seconds. Health is "ok", or lists what complained
    when the run was last evaluated; 'ganlab runs show RUN' prints the complaints in full.
    """
    if not folder.is_dir():
        raise RunError(
            f"There is no folder {line(folder)}. Give the folder that 'ganlab run --runs' wrote to, "
            "or make a first run: ganlab run --gin quickstart.gin"
        )
    rows = list(listed(folder, status))
    if as_json:
        say_json([{**asdict(row), "path": str(row.path)} for row in rows])
    elif rows:
        _print_table(rows)
    else:
        say(f"No run at or below {line(folder)}" + (f" has the status {status}." if status else "."))


def _print_table(rows: Sequence[Listed]) -> None:
    from rich.table import Table

    console = table_console(_WIDEST)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("run", overflow="fold", min_width=20)
    table.add_column("status", no_wrap=True)
    for name in ("step", "age", "size"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("health", overflow="fold")
    table.add_column("warnings", justify="right", no_wrap=True)
    table.add_column("dataset", overflow="fold")
    table.add_column("constraints", overflow="fold")
    now, texts = datetime.now(UTC), []
    for row in rows:
        mark = f" {MARK}" if row.changes else ""
        done = "" if row.step is None else f"{row.step}/{row.steps}"
        began = None if row.started is None else datetime.fromisoformat(row.started)
        age = "" if began is None else in_time((now - began).total_seconds(), units=1)
        unreadable = row.problem if row.status == "unreadable" else None
        parts = [row.dataset or "", unreadable or row.constraints or ""]
        problems = [health_in_brief(row.health), len(row.warnings)]
        cells = [f"{row.path}{mark}", row.status, done, age, in_bytes(row.bytes), *problems, *parts]
        texts.append([line(part) for part in cells])
    draw(console, table, [list(map(_shortened, row)) for row in texts] if console.is_terminal else texts)
    for row in rows:
        if row.problem and row.status != "unreadable":
            say(f"Warning: {_shortened(line(row.problem))}", err=True)
    if any(row.changes for row in rows):
        say(f"{MARK} Changed midway: settings, data or code differ from those at the start; see ganlab runs show.")


def draw(console: Console, table: Table, rows: Sequence[Sequence[str]]) -> None:
    """Prints a table of one-line cells. What fits is drawn here, because rich takes half a millisecond for a row."""
    from rich.cells import cell_len

    heads = [f"{column.header}".ljust(column.min_width or 0) for column in table.columns]
    widths = [max(map(cell_len, cells)) for cells in zip(heads, *rows, strict=True)]
    fits = sum(widths) + 2 * len(widths) - 2 <= console.width
    for row in () if fits else rows:
        table.add_row(*map(cell, row))
    for column, width in zip(table.columns, widths, strict=True):
        column.width = width if fits else None
    console.print(table)
    rights, lines = [column.justify == "right" for column in table.columns], []
    for row in rows if fits else ():
        rooms = [" " * (width - cell_len(text)) for text, width in zip(row, widths, strict=True)]
        parts = (room + text if right else text + room for text, room, right in zip(row, rooms, rights, strict=True))
        lines.append("  ".join(parts) + "\n")
    say("".join(lines), nl=False)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
