"""The experiment and the plugins that a command line names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ganlab.errors import PluginError
from ganlab.plugins import manager as plugins

if TYPE_CHECKING:
    from ganlab.plugins.recipes import Recipe


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
