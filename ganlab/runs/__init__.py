"""Run directories: where a run is stored, what it writes there, and how it is read back."""

from ganlab.runs.directory import METRICS, RunDirectory, create_run, find_runs, new_run_path, runs_matching
from ganlab.runs.fields import check_place
from ganlab.runs.info import INFO, why_unreadable
from ganlab.runs.listing import status_of
from ganlab.runs.naming import MOST_SETTINGS, SEED, Settings, differing, run_names, short
from ganlab.runs.provenance import provenance

__all__ = [
    "INFO",
    "METRICS",
    "MOST_SETTINGS",
    "SEED",
    "RunDirectory",
    "Settings",
    "check_place",
    "create_run",
    "differing",
    "find_runs",
    "new_run_path",
    "provenance",
    "run_names",
    "runs_matching",
    "short",
    "status_of",
    "why_unreadable",
]
