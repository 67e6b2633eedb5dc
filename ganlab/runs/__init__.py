"""Run directories: where a run is stored, what it writes there, and how it is read back."""

from ganlab.runs.addresses import at_address
from ganlab.runs.changes import MARK, Change, all_changes, changes_of
from ganlab.runs.changes import in_words as changes_in_words
from ganlab.runs.directory import CONFIG, METRICS, RunDirectory, create_run, find_runs, new_run_path, runs_matching
from ganlab.runs.fields import check_new, check_place, new_path
from ganlab.runs.health import UNNAMED, complaints_of, warnings_of
from ganlab.runs.health import in_brief as health_in_brief
from ganlab.runs.health import name_of as name_of_complaint
from ganlab.runs.info import INFO, limits_of, read_fields, why_unreadable
from ganlab.runs.lock import LOCK, at_rest, holder, locked, start_watching
from ganlab.runs.naming import MOST_SETTINGS, SEED, Scalar, Settings, described, differing, setting, short
from ganlab.runs.plugin_file import confirmed, recorded
from ganlab.runs.provenance import provenance, versions
from ganlab.runs.status import SHOWN_BY, STATUSES, checkpoint_steps, size_on_disk, started_at, status_of

__all__ = [
    "CONFIG",
    "INFO",
    "LOCK",
    "MARK",
    "METRICS",
    "MOST_SETTINGS",
    "SEED",
    "SHOWN_BY",
    "STATUSES",
    "UNNAMED",
    "Change",
    "RunDirectory",
    "Scalar",
    "Settings",
    "all_changes",
    "at_address",
    "at_rest",
    "changes_in_words",
    "changes_of",
    "check_new",
    "check_place",
    "checkpoint_steps",
    "complaints_of",
    "confirmed",
    "create_run",
    "described",
    "differing",
    "find_runs",
    "health_in_brief",
    "holder",
    "limits_of",
    "locked",
    "name_of_complaint",
    "new_path",
    "new_run_path",
    "provenance",
    "read_fields",
    "recorded",
    "runs_matching",
    "setting",
    "short",
    "size_on_disk",
    "start_watching",
    "started_at",
    "status_of",
    "versions",
    "warnings_of",
    "why_unreadable",
]
