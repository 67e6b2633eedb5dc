"""`ganlab runs list`: the runs below a folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from ganlab.cli.tables import table_console
from ganlab.cli.words import in_bytes, in_time, plain
from ganlab.errors import RunError
from ganlab.runs.listing import STATUSES, Listed, listed


@click.command("list")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("runs"))
@click.option("--status", type=click.Choice(STATUSES), help="Only those of this status.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list instead.")
def list_command(folder: Path, status: str | None, as_json: bool) -> None:
    """Lists the runs at or below FOLDER, by default runs/.

    A run is "killed" where its run.json says "running" and no process trains it.
    """
    if not folder.is_dir():
        raise RunError(
            f"There is no folder {folder} of runs here. Give the folder that 'ganlab run --runs' wrote to, "
            "or make a first run: ganlab run --gin quickstart.gin"
        )
    rows = list(listed(folder, status))
    if as_json:
        click.echo(json.dumps([{**asdict(row), "path": str(row.path)} for row in rows], indent=2))
    elif rows:
        _print_table(rows)
    else:
        click.echo(f"No run at or below {folder}" + (f" is {status}." if status else "."))


def _print_table(rows: Sequence[Listed]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = table_console(120)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("run", overflow="fold", min_width=20)
    table.add_column("status", no_wrap=True)
    for name in ("step", "age", "size"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("dataset", overflow="fold")
    table.add_column("constraints", overflow="fold")
    now = datetime.now(UTC)
    for row in rows:
        done = "" if row.step is None else f"{row.step}/{row.steps}"
        age = "" if row.started is None else in_time((now - datetime.fromisoformat(row.started)).total_seconds())
        parts = [row.dataset or "", row.problem if row.problem else row.constraints or ""]
        cells = [row.path, row.status, done, age, in_bytes(row.bytes), *parts]
        table.add_row(*(Text(plain(cell)) for cell in cells))
    console.print(table)
