"""Options that several commands share: which experiment, and which plugins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

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
