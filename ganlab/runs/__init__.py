"""Run directories: where a run goes, what it leaves there, and reading it back."""

from ganlab.runs.checking import check_place
from ganlab.runs.provenance import provenance
from ganlab.runs.run import Run, create_run, find_runs, new_run_path

__all__ = ["Run", "check_place", "create_run", "find_runs", "new_run_path", "provenance"]
