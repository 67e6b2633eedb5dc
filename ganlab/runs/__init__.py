"""Run directories: where a run is stored, what it writes there, and how it is read back."""

from ganlab.runs.directory import RunDirectory, create_run, find_runs, new_run_path
from ganlab.runs.fields import check_place
from ganlab.runs.origins import data_changes, data_of
from ganlab.runs.provenance import provenance

__all__ = [
    "RunDirectory",
    "check_place",
    "create_run",
    "data_changes",
    "data_of",
    "find_runs",
    "new_run_path",
    "provenance",
]
