"""`ganlab runs`: lists, watches, shows, removes and archives runs."""

from __future__ import annotations

import click

from ganlab.cli.subcommands import CommandGroup

_OWN = {
    "list": "ganlab.cli.runs_list:list_command",
    "show": "ganlab.cli.runs_show:show",
}


@click.group("runs", cls=CommandGroup, own=_OWN, prefix="runs.")
def runs() -> None:
    """Lists, watches, shows, removes and archives runs. Nothing in a run is executed."""
