"""The experiment and the plugins that a command line names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ganlab.errors import PluginError
from ganlab.plugins import manager as plugins
from ganlab.plugins.discovery import plugin_file_in
from ganlab.support import paths

if TYPE_CHECKING:
    from ganlab.plugins.recipes import Recipe


def use_plugins(no_plugin: Sequence[str], plugin_file: Path | None, first_gin: str | None = None) -> plugins.Plugins:
    """Discovers the plugins for this command and makes them the ones in use.

    Args:
        no_plugin: Names of plugins to leave out.
        plugin_file: The single-file plugin given on the command line.
        first_gin: The first experiment file; a `ganlab_plugins.py` beside it is used.

    Raises:
        PluginError: `plugin_file` is not a file, or a name in `no_plugin` is unknown.
        ConfigError: The experiment file is missing.
    """
    local = None if plugin_file is None else paths.local(plugin_file, "plugin_file")
    if local is not None and not local.is_file():
        raise PluginError(f"--plugin-file {local} is not a file. Give the path of a Python file with ganlab hooks.")
    if local is None and first_gin is not None:
        from ganlab.config.files import find_gin_file

        local = plugin_file_in(find_gin_file(first_gin).parent)
    return plugins.use(plugins.discover(deny=no_plugin, local=local.resolve() if local else None))


def read_experiment(gin_files: Sequence[str], params: Sequence[str]) -> Recipe:
    """Reads the experiment from files and overrides, with the plugins in use.

    Raises:
        GanlabError: The experiment has a mistake.
    """
    from ganlab.config import load
    from ganlab.config.files import find_gin_file
    from ganlab.runs.plugin_file import named_in_errors, take_up

    folder = find_gin_file(gin_files[0]).parent
    take_up(folder)
    with named_in_errors(folder):
        return load(gin_files, params)
