"""Groups of commands, each of which is loaded when it is called and listed without being imported."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from ganlab.cli import plugin_commands
from ganlab.cli.command_sources import docstring
from ganlab.cli.messages import one_line
from ganlab.cli.plugin_commands import Added
from ganlab.errors import nearest


class CommandGroup(click.Group):
    """A group of ganlab's commands and those that applications add by entry points."""

    def __init__(
        self, name: str | None = None, *, own: Mapping[str, str] | None = None, prefix: str = "", **settings: Any
    ) -> None:
        """Makes a group of `own` commands, each as `module:attribute`, and of entry points with the prefix."""
        super().__init__(name, **settings)
        self.own, self.prefix = own or {}, prefix

    def applications(self, ctx: click.Context) -> Added:
        """The commands that applications add, collected once."""
        key = f"ganlab.cli.applications.{self.prefix}"
        if key not in ctx.meta:
            ctx.meta[key] = plugin_commands.of_applications(self.own, self.prefix)
        added: Added = ctx.meta[key]
        return added

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names: ganlab's in their order, then those of applications."""
        return [*self.own, *self.applications(ctx).commands, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command with this name, imported on demand."""
        if cmd_name in self.own:
            module, _, attribute = self.own[cmd_name].partition(":")
            command: click.Command = getattr(importlib.import_module(module), attribute)
            return command
        return super().get_command(ctx, cmd_name) or self.applications(ctx).find(cmd_name)

    def clashes(self, ctx: click.Context) -> Mapping[str, str]:
        """An error message for each name that several offer."""
        return self.applications(ctx).clashes

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command that the arguments begin with; an unknown one is an error with a suggestion."""
        name = args[0]
        if self.get_command(ctx, name) is None:
            clash = self.clashes(ctx).get(name)
            raise click.UsageError(clash or f"No such command {name!r}.{nearest(name, self.every_name(ctx))}", ctx)
        return super().resolve_command(ctx, args)

    def every_name(self, ctx: click.Context) -> list[str]:
        """All names, for suggestions."""
        return self.list_commands(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes a line for each command, from its source code."""
        rows = {name: docstring(target) for name, target in self.own.items()}
        rows |= {name: offer.about() for name, offer in self.applications(ctx).commands.items()}
        rows |= {name: command.help or "" for name, command in self.commands.items()}
        write_rows(formatter, "Commands", {name: rows[name] for name in self.list_commands(ctx)})


def write_rows(formatter: click.HelpFormatter, title: str, rows: Mapping[str, str]) -> None:
    """Writes a section of commands: their names and help texts."""
    if rows:
        left = formatter.width - 6 - max(map(len, rows))
        with formatter.section(title):
            formatter.write_dl(
                [(one_line(name), one_line(plugin_commands.summary(about, left))) for name, about in rows.items()]
            )
