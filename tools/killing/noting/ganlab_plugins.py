"""Reports a run's progress to the tool, outside the run's folder, and makes the reference run keep all checkpoints."""

import os

import ganlab


@ganlab.hookimpl
def ganlab_run_start(run):
    """Records that training begins."""
    if os.environ.get("CHAOS_KEEP_ALL"):
        from ganlab.training import checkpoints

        checkpoints.KEEP = 1 << 30
    _note(0)


@ganlab.hookimpl
def ganlab_metrics(run, records):
    """Records the step of a row."""
    _note(records[0].step)


def _note(step):
    with open(os.environ["CHAOS_NOTES"], "a") as file:
        file.write(f"{step}\n")
