"""The command line: one file per command, each loaded on demand."""

from __future__ import annotations

import importlib
import os
import shlex
import sys
import traceback
from typing import TYPE_CHECKING, Any

import click

from ganlab.cli.messages import message_of, one_line, say, take_any_name, warn_plainly
from ganlab.cli.process import finish, open_streams
from ganlab.errors import GanlabError, NotNamedError, PluginError, TrainingFailedError, nearest
from ganlab.lazy import import_matplotlib
from ganlab.plugins.command_names import COMMAND_NAMES
from ganlab.support.collector import collect_rarely
from ganlab.support.terminal import lines
from ganlab.version import __version__

if TYPE_CHECKING:
    from ganlab.cli.plugin_commands import Added

# Command name to the module that has a click command of that name.
COMMANDS = {name: f"ganlab.cli.{name}" for name in COMMAND_NAMES} | {"tensorboard": "ganlab_tensorboard.command"}
_ADDED, _ARGUMENTS = "ganlab.cli.added", "ganlab.cli.arguments"
USER_ERROR, FAILED, INTERRUPTED = 2, 1, 130


class GanlabGroup(click.Group):
    """Lists ganlab's commands, then those that plugins add; turns exceptions into messages and exit codes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keeps the arguments, for errors that name a command that works."""
        ctx.meta[_ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of ganlab's own commands, and of those added to this group."""
        return [*COMMANDS, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command with this name; plugins are consulted only if it is not one of ganlab's own."""
        if cmd_name in COMMANDS:
            command: click.Command = getattr(importlib.import_module(COMMANDS[cmd_name]), cmd_name)
            return command
        return self.commands.get(cmd_name) or self._added(ctx).find(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command that the arguments begin with; an unknown one is an error with a suggestion."""
        name = args[0]
        if self.get_command(ctx, name) is None:
            added = self._added(ctx)
            if name in added.clashes:
                raise click.UsageError(added.clashes[name], ctx)
            raise click.UsageError(f"No such command {name!r}.{nearest(name, self._every_name(ctx))}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes ganlab's commands, then those of plugins, which have half a second to list them."""
        super().format_commands(ctx, formatter)
        from ganlab.cli import plugin_help

        rows = plugin_help.rows(list(COMMANDS))
        if rows:
            with formatter.section("Commands of plugins"):
                formatter.write_dl([(one_line(name), one_line(about)) for name, about in rows])

    def _added(self, ctx: click.Context) -> Added:
        """The commands that plugins add, collected once; a plugin that fails to add its commands causes a warning."""
        from ganlab.cli import plugin_commands

        meta = ctx.find_root().meta
        if _ADDED not in meta:
            meta[_ADDED] = plugin_commands.added(plugin_commands.in_use(), COMMANDS)
            for failure in meta[_ADDED].failures:
                say(f"Warning: {failure}", err=True)
        found: Added = meta[_ADDED]
        return found

    def _every_name(self, ctx: click.Context) -> list[str]:
        return [*self.list_commands(ctx), *self._added(ctx).commands]

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command. A user's mistake gives one message and exit code 2; a failed run gives exit code 1."""
        try:
            return super().invoke(ctx)
        except GanlabError as error:
            _report(ctx, error)
            ctx.exit(USER_ERROR)
        except TrainingFailedError as error:
            _report(ctx, error)
            ctx.exit(FAILED)
        except click.ClickException as error:
            vars(error)["message"] = lines(error.message)
            raise
        except KeyboardInterrupt:
            say("Interrupted.", err=True)
            ctx.exit(INTERRUPTED)


def _report(ctx: click.Context, error: Exception) -> None:
    if ctx.params.get("debug"):
        say("".join(traceback.format_exception(error)), err=True)
    if isinstance(error, NotNamedError):
        command = shlex.join(["ganlab", *ctx.meta[_ARGUMENTS], *error.options])
        error = PluginError(f"Repeat the command as {command}: {error.reason}")
    say(f"Error: {message_of(error)}", err=True)


@click.group(
    cls=GanlabGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Plugins can add commands; 'ganlab plugins' lists what is installed.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(__version__, prog_name="ganlab")
def cli(debug: bool) -> None:
    """The lab bench for Lipschitz-constrained GANs."""


def main() -> None:
    """The entry point `ganlab`."""
    collect_rarely()
    import_matplotlib()
    open_streams()
    take_any_name()
    warn_plainly()
    if "_GANLAB_COMPLETE" in os.environ:  # a shell asks for completions
        from ganlab.cli import completing, completion

        completing.install(cli)
        completion.register()
    sys.exit(finish(lambda: cli.main(prog_name="ganlab")))
