"""First-party commands. `ganlab --help` imports this package, so it imports little."""

from __future__ import annotations

import click

import ganlab
from ganlab_builtin.commands.dataset import dataset


@ganlab.hookimpl
def ganlab_register_commands(cli: click.Group) -> None:
    """The commands of this package."""
    cli.add_command(dataset)
