"""The command line: one file a command, each loaded when it is asked for."""

from __future__ import annotations

import importlib
import os
import traceback
from typing import Any

import click

from ganlab import __version__
from ganlab.cli.messages import take_any_name, told, warn_plainly
from ganlab.errors import GanlabError, TrainingFailedError, nearest

# Command name to the module that has a click command of that name.
COMMANDS = {
    "run": "ganlab.cli.run",
    "sweep": "ganlab.cli.sweep",
    "evaluate": "ganlab.cli.evaluate",
    "sample": "ganlab.cli.sample",
    "export": "ganlab.cli.export",
    "runs": "ganlab.cli.runs",
    "plugins": "ganlab.cli.plugins",
    "config": "ganlab.cli.config",
    "tensorboard": "ganlab.cli.tensorboard",
    "compare": "ganlab.cli.compare",
    "doctor": "ganlab.cli.doctor",
    "verify": "ganlab.cli.verify",
    "completion": "ganlab.cli.completion",
}
USER_ERROR, FAILED, INTERRUPTED = 2, 1, 130


class GanlabGroup(click.Group):
    """The commands of ganlab and then those that plugins add; turns exceptions into messages and exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names that help shows: ganlab's own, since asking the plugins would import them all."""
        return [*COMMANDS, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name; plugins are asked only for one that is not ganlab's own."""
        if cmd_name in COMMANDS:
            command: click.Command = getattr(importlib.import_module(COMMANDS[cmd_name]), cmd_name)
            return command
        if cmd_name not in self.commands:
            from ganlab.plugins import current

            for failure in current().notify("ganlab_register_commands", cli=self):
                click.echo(f"Warning: {failure}", err=True)
        return self.commands.get(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command that the arguments begin with; one that is not there is an error with a suggestion."""
        if self.get_command(ctx, args[0]) is None:
            near = nearest(args[0], self.list_commands(ctx))
            raise click.UsageError(f"No such command {args[0]!r}.{near}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command. A mistake of the user's is one message and exit code 2, a failed run exit code 1."""
        try:
            return super().invoke(ctx)
        except GanlabError as error:
            _report(ctx, error)
            ctx.exit(USER_ERROR)
        except TrainingFailedError as error:
            _report(ctx, error)
            ctx.exit(FAILED)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(INTERRUPTED)


def _report(ctx: click.Context, error: Exception) -> None:
    if ctx.params.get("debug"):
        traceback.print_exception(error)
    click.echo(f"Error: {told(error)}", err=True)


@click.group(
    cls=GanlabGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Plugins may add commands of their own; 'ganlab plugins' lists what is installed.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(__version__, prog_name="ganlab")
def cli(debug: bool) -> None:
    """The lab bench for Lipschitz-constrained GANs."""


def main() -> None:
    """The entry point `ganlab`."""
    take_any_name()
    warn_plainly()
    if "_GANLAB_COMPLETE" in os.environ:  # a shell asks what could come next
        from ganlab.cli import completing, completion

        completing.install(cli)
        completion.register()
    cli.main(prog_name="ganlab")
