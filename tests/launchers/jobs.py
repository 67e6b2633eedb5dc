"""Waiting for jobs."""

import time


def status(job, seconds=200.0):
    """The exit status of a job that ends soon."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (found := job.poll()) is not None:
            return found
        time.sleep(0.05)
    raise AssertionError(f"It has not ended after {seconds} s.")
