"""Options that several commands share: which experiment, and which plugins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ganlab import plugins
from ganlab.errors import PluginError

if TYPE_CHECKING:
    from ganlab.recipes import Recipe

Command = TypeVar("Command", bound=Callable[..., Any])

# Which plugin file a command takes by itself, said in its help.
BESIDE_GIN = "; by default the ganlab_plugins.py beside the first --gin file, unless that is a run's folder"
HERE = "; by default the ganlab_plugins.py of this folder, unless it is a run's"
OF_THE_RUN = ", such as the one that the run was trained with; by default none"


def plugin_options(default: str) -> Callable[[Command], Command]:
    """Adds `--no-plugin` and `--plugin-file`, for `use_plugins`.

    Args:
        default: Which plugin file is taken where none is given, for the help.
    """

    def add(command: Command) -> Command:
        command = click.option(
            "--no-plugin", metavar="NAME", multiple=True, help="Leave a plugin out. May be given several times."
        )(command)
        return click.option(
            "--plugin-file",
            metavar="PATH",
            type=click.Path(path_type=Path),
            help=f"A plugin in one file{default}.",
        )(command)

    return add


def experiment_options(command: Command) -> Command:
    """Adds `--gin` and `--param`."""
    command = click.option(
        "--param",
        "params",
        metavar="NAME=VALUE",
        multiple=True,
        help="Override a setting, such as 'experiment.steps=100'. May be given several times.",
    )(command)
    return click.option(
        "--gin",
        "gin_files",
        metavar="FILE",
        multiple=True,
        help="Experiment file, by path or by the name of a shipped one. May be given several times: "
        "later files override earlier ones.",
    )(command)


def use_plugins(no_plugin: Sequence[str], plugin_file: Path | None, first_gin: str | None = None) -> plugins.Plugins:
    """Finds the plugins of this command and puts them to use.

    Args:
        no_plugin: Names to leave out.
        plugin_file: The plugin in one file that was asked for.
        first_gin: The first experiment file, beside which a `ganlab_plugins.py` may lie.

    Raises:
        PluginError: `plugin_file` is no file, or a name is no plugin's.
        ConfigError: There is no such experiment file.
    """
    local = plugin_file
    if local is not None and not local.is_file():
        raise PluginError(f"--plugin-file {local} is no file. Give the path of a Python file with ganlab hooks.")
    if local is None and first_gin is not None:
        from ganlab.config.files import find_gin_file

        local = plugin_file_in(find_gin_file(first_gin).parent)
    return plugins.use(plugins.discover(deny=no_plugin, local=local.resolve() if local else None))


def plugin_file_in(folder: Path) -> Path | None:
    """The `ganlab_plugins.py` of a folder, or None. A run's is data, perhaps a stranger's, and is not executed."""
    path = folder / f"{plugins.LOCAL_MODULE}.py"
    return path if path.is_file() and not (folder / "run.json").is_file() else None


def read_experiment(gin_files: Sequence[str], params: Sequence[str]) -> Recipe:
    """The experiment of these files and overrides, by the plugins in use.

    Raises:
        GanlabError: There is a mistake in it.
    """
    from ganlab.config import load
    from ganlab.config.files import find_gin_file
    from ganlab.runs.plugin_file import named_in_errors

    with named_in_errors(find_gin_file(gin_files[0]).parent):
        return load(gin_files, params)
