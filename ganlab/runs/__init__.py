"""Run directories: where a run is stored, what it writes there, and how it is read back."""

from ganlab.runs.directory import METRICS, RunDirectory, create_run, find_runs, new_run_path, runs_matching
from ganlab.runs.fields import check_place, new_path
from ganlab.runs.info import INFO, limits_of, why_unreadable
from ganlab.runs.listing import status_of
from ganlab.runs.naming import MOST_SETTINGS, SEED, Settings, differing, run_names, short
from ganlab.runs.plugin_file import confirmed, recorded
from ganlab.runs.provenance import provenance, versions

__all__ = [
    "INFO",
    "METRICS",
    "MOST_SETTINGS",
    "SEED",
    "RunDirectory",
    "Settings",
    "check_place",
    "confirmed",
    "create_run",
    "differing",
    "find_runs",
    "limits_of",
    "new_path",
    "new_run_path",
    "provenance",
    "recorded",
    "run_names",
    "runs_matching",
    "short",
    "status_of",
    "versions",
    "why_unreadable",
]
