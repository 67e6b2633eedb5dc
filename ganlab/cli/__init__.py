"""The command line: one file per command, each loaded on demand."""

from __future__ import annotations

import os
import shlex
import sys
import traceback
from collections.abc import Mapping
from typing import Any

import click

from ganlab.cli import plugin_commands
from ganlab.cli.messages import message_of, say, take_any_name, warn_plainly
from ganlab.cli.plugin_commands import Added
from ganlab.cli.process import finish, open_streams
from ganlab.cli.subcommands import CommandGroup, write_rows
from ganlab.errors import GanlabError, NotNamedError, PluginError, RunInUseError, TrainingFailedError
from ganlab.lazy import import_matplotlib
from ganlab.plugins.command_names import COMMAND_NAMES
from ganlab.support.collector import collect_rarely
from ganlab.support.terminal import lines
from ganlab.version import __version__

# ganlab's own commands, each as `module:attribute`.
COMMANDS = {name: f"ganlab.cli.{name}:{name}" for name in COMMAND_NAMES}
_ADDED, _ARGUMENTS = "ganlab.cli.added", "ganlab.cli.arguments"
IN_USE, USER_ERROR, FAILED, INTERRUPTED = 75, 2, 1, 130


class GanlabGroup(CommandGroup):
    """Lists ganlab's commands, then those that plugins add; turns exceptions into messages and exit codes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keeps the arguments, for errors that name a command that works."""
        ctx.meta[_ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command with this name; plugins are loaded only if it is neither ganlab's nor an application's."""
        return super().get_command(ctx, cmd_name) or self._of_hooks(ctx).find(cmd_name)

    def clashes(self, ctx: click.Context) -> Mapping[str, str]:
        """An error message for each name that several offer."""
        return {**self._of_hooks(ctx).clashes, **super().clashes(ctx)}

    def every_name(self, ctx: click.Context) -> list[str]:
        """All names, for suggestions."""
        return [*super().every_name(ctx), *self._of_hooks(ctx).commands]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands of ganlab and of applications, then those of plugins' hooks, from their source code."""
        super().format_commands(ctx, formatter)
        write_rows(formatter, "Commands of plugins", plugin_commands.listed_in_sources(self.list_commands(ctx)))

    def _of_hooks(self, ctx: click.Context) -> Added:
        """The commands that hooks add, collected once; a plugin that fails to add its commands causes a warning."""
        meta = ctx.find_root().meta
        if _ADDED not in meta:
            meta[_ADDED] = plugin_commands.of_hooks(plugin_commands.in_use(), self.list_commands(ctx))
            for failure in meta[_ADDED].failures:
                say(f"Warning: {failure}", err=True)
        added: Added = meta[_ADDED]
        return added

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command. A user's mistake gives one message and exit code 2; a failed run gives exit code 1."""
        try:
            return super().invoke(ctx)
        except (GanlabError, TrainingFailedError) as error:
            _report(ctx, error)
            code = IN_USE if isinstance(error, RunInUseError) else USER_ERROR
            ctx.exit(FAILED if isinstance(error, TrainingFailedError) else code)
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
    own=COMMANDS,
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
