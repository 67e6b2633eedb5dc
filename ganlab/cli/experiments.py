"""Experiment files and plugins, imported when a command needs them: `ganlab --help` imports every command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ganlab.plugins.manager import Plugins
    from ganlab.plugins.recipes import Recipe


def use_plugins(no_plugin: Sequence[str], plugin_file: Path | None, first_gin: str | None = None) -> Plugins:
    """`ganlab.runs.experiment_source.use_plugins`."""
    from ganlab.runs import experiment_source

    return experiment_source.use_plugins(no_plugin, plugin_file, first_gin)


def read_experiment(gin_files: Sequence[str], params: Sequence[str]) -> Recipe:
    """`ganlab.runs.experiment_source.read_experiment`."""
    from ganlab.runs import experiment_source

    return experiment_source.read_experiment(gin_files, params)
