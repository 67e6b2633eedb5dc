"""Groups of commands whose members are loaded on demand."""

from __future__ import annotations

import importlib
from typing import ClassVar

import click

from ganlab.errors import nearest


class Subcommands(click.Group):
    """A group of commands, each in its own module.

    Attributes:
        modules: Command name to the module that has a click command of that name.
    """

    modules: ClassVar[dict[str, str]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of `modules`."""
        return list(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command with this name, imported on demand."""
        if cmd_name not in self.modules:
            return None
        module = importlib.import_module(self.modules[cmd_name])
        command: click.Command = getattr(module, f"{cmd_name}_command", None) or getattr(module, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command that the arguments begin with; an unknown one is an error with a suggestion."""
        if args[0] not in self.modules:
            raise click.UsageError(f"No such command {args[0]!r}.{nearest(args[0], self.modules)}", ctx)
        return super().resolve_command(ctx, args)
