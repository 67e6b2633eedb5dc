"""Run directories: where a run is stored, what it writes there, and how it is read back.

Programs that train several runs also find here the experiment files, plugins and versions that a run depends on.
"""

from ganlab.config import find_gin_file
from ganlab.config.files import shipped_folder
from ganlab.plugins.discovery import plugin_file_in
from ganlab.plugins.manager import Component, Plugins
from ganlab.runs.directory import RunDirectory, create_run, find_runs, new_run_path
from ganlab.runs.experiment_source import read_experiment, use_plugins
from ganlab.runs.fields import check_place, new_path
from ganlab.runs.info import limits_of
from ganlab.runs.plugin_file import confirmed, recorded
from ganlab.runs.provenance import provenance, versions

__all__ = [
    "Component",
    "Plugins",
    "RunDirectory",
    "check_place",
    "confirmed",
    "create_run",
    "find_gin_file",
    "find_runs",
    "limits_of",
    "new_path",
    "new_run_path",
    "plugin_file_in",
    "provenance",
    "read_experiment",
    "recorded",
    "shipped_folder",
    "use_plugins",
    "versions",
]
