"""Jobs that stand for training, a sweep that starts one, and waiting for them."""

import time

# Saves when it is asked to.
SAVING = """
import os, signal, sys, time
def save(number, frame):
    print("saved", flush=True)
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
print("process", os.getpid(), "is training", flush=True)
time.sleep(60)
"""

SWEEP = """
import pathlib, sys, time
import ganlab
launcher = ganlab.component("launchers", {name!r})(**{arguments!r})
here = pathlib.Path.cwd()
job = launcher.start({command}, environment={{}}, folder=here, log=here / "log.txt")
while job.poll() is None:
    time.sleep(0.1)
"""


def sweep(name, arguments, code):
    """The code of a sweep of one job, which executes other code."""
    return SWEEP.format(name=name, arguments=arguments, command=f'[sys.executable, "-c", {code!r}]')


def status(job, seconds=200.0):
    """The exit status of a job that ends soon."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (found := job.poll()) is not None:
            return found
        time.sleep(0.05)
    raise AssertionError(f"It has not ended after {seconds} s.")


def alive(process):
    """Whether a process exists and has not ended."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the second if it ends while it is read
        return False


def parent(process):
    """The process that started another."""
    with open(f"/proc/{process}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def until(condition, seconds=200.0):
    """Waits for a condition, and returns what it returned."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "It has not come about."
        time.sleep(0.02)
    return found
