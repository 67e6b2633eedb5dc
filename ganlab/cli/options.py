"""Options that several commands share: the experiment and the plugins."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from ganlab.cli.plugin_commands import in_use
from ganlab.errors import ConfigError
from ganlab.runs import at_address
from ganlab.runs.experiment_source import use_plugins
from ganlab.support.paths import is_url, local


class LocalPath(click.Path):
    """A path on this machine, as a `Path`."""

    def __init__(self, **options: bool) -> None:
        super().__init__(**options, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; a URL, nothing, and a dash for a standard stream are refused before anything looks at them."""
        if value == "-":
            reason = "- is standard input or output, which is not taken here: give a path (./- for this name)."
            self.fail(reason, param, ctx)
        if value == "":
            self.fail("the path is empty: give one (. for this folder).", param, ctx)
        try:
            local(value)
        except ConfigError as error:
            self.fail(str(error), param, ctx)
        return super().convert(value, param, ctx)


class RunsPath(LocalPath):
    """A run or a folder of runs, as a `Path`; an address is opened by the plugin that knows it."""

    def __init__(self, use: str = "read", **options: bool) -> None:
        super().__init__(**options)
        self._use = use

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; of an address, the folder that stands for it until the command ends."""
        if ctx is not None and is_url(value):
            in_use()
            if (opened := at_address(value, self._use)) is not None:
                folder, ctx.meta[TRAINED] = ctx.with_resource(opened)
                ctx.meta[OPENED] = value, folder
                return folder
        return super().convert(value, param, ctx)


OPENED = "ganlab.cli.options.opened"  # in `click.Context.meta`: an opened address and its folder
TRAINED = "ganlab.cli.options.trained"  # in `click.Context.meta`: the function of an opened address that takes the run
Command = TypeVar("Command", bound=Callable[..., Any])

# The plugin file that a command uses by default, for its help.
_UNLESS = "unless it lies in the folder of a run, a sweep or a benchmark"
BESIDE_GIN = f"; by default the ganlab_plugins.py beside the first --gin file, {_UNLESS}"
HERE = f"; by default the ganlab_plugins.py of this folder, {_UNLESS}"
OF_THE_RUN = "; by default the one that the run was trained with, if this folder has it with the same content"


def plugin_options(default: str) -> Callable[[Command], Command]:
    """Adds `--no-plugin` and `--plugin-file`, for `use_plugins`.

    Args:
        default: The default plugin file, as described in the help.
    """

    def add(command: Command) -> Command:
        command = click.option(
            "--no-plugin", metavar="NAME", multiple=True, help="Disable a plugin. May be given several times."
        )(command)
        return click.option(
            "--plugin-file",
            metavar="PATH",
            type=LocalPath(),
            help=f"A plugin in one file{default}.",
        )(command)

    return add


def run_with_plugins(command: Command) -> Command:
    """Adds the options of `plugin_options` to a command on a run, and calls it with the plugins in use."""

    @functools.wraps(command)
    def using(*arguments: Any, no_plugin: tuple[str, ...], plugin_file: Path | None, **options: Any) -> Any:
        use_plugins(no_plugin, plugin_file)
        return command(*arguments, **options)

    return plugin_options(OF_THE_RUN)(cast(Command, using))


def experiment_options(command: Command) -> Command:
    """Adds `[FILE]...`, `--gin` and `--param`; the command gets all files as those of `--gin`."""

    @functools.wraps(command)
    def with_files(*arguments: Any, files: tuple[str, ...], gin_files: tuple[str, ...], **options: Any) -> Any:
        if files:
            ctx = click.get_current_context()
            ctx.params["gin_files"] = gin_files = (*files, *gin_files)
            ctx.set_parameter_source("gin_files", click.core.ParameterSource.COMMANDLINE)
        return command(*arguments, gin_files=gin_files, **options)

    described = click.argument("files", metavar="[FILE]...", nargs=-1)(cast(Command, with_files))
    described = click.option(
        "--param",
        "params",
        metavar="NAME=VALUE",
        multiple=True,
        help="Override a setting, for example 'experiment.steps=100'. May be given several times.",
    )(described)
    return click.option(
        "--gin",
        "gin_files",
        metavar="FILE",
        multiple=True,
        help="Experiment file: a path, or the name of a shipped file. May be given several times: "
        "later files override earlier ones.",
    )(described)


class _Step(click.ParamType):
    """A step, or "best"."""

    name = "step"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """The step as a number."""
        if isinstance(value, int) or value == "best":
            return value
        if not str(value).isdecimal() or not str(value).isascii():
            self.fail(f"{value!r} must be a step, a whole number of at least 0, or 'best'.", param, ctx)
        return int(value)


def checkpoint_option(command: Command) -> Command:
    """Adds `--checkpoint`."""
    return click.option(
        "--checkpoint",
        type=_Step(),
        metavar="STEP",
        help="The checkpoint of this step, or 'best' by experiment.keep_best; by default the newest.",
    )(command)
