"""`ganlab runs`: lists, watches, shows, removes and archives runs."""

from __future__ import annotations

import click

from ganlab.cli.subcommands import CommandGroup


@click.group("runs", cls=CommandGroup, prefix="runs.")
def runs() -> None:
    """Lists, watches, shows, removes and archives runs. Nothing in a run is executed."""
