"""Run directories: where a run is stored, what it writes there, and how it is read back."""

from ganlab.runs.directory import RunDirectory, create_run, find_runs, new_run_path
from ganlab.runs.fields import check_place, new_path
from ganlab.runs.info import limits_of
from ganlab.runs.origins import data_changes, data_of
from ganlab.runs.plugin_file import confirmed, recorded
from ganlab.runs.provenance import provenance, versions

__all__ = [
    "RunDirectory",
    "check_place",
    "confirmed",
    "create_run",
    "data_changes",
    "data_of",
    "find_runs",
    "limits_of",
    "new_path",
    "new_run_path",
    "provenance",
    "recorded",
    "versions",
]
