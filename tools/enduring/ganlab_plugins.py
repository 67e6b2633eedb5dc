"""Records the process's resources at every hundredth step, outside the run's folder."""

import ctypes
import gc
import json
import os
from pathlib import Path

import ganlab

EVERY = 100


@ganlab.hookimpl
def ganlab_metrics(run, records):
    """Records memory, descriptors and threads."""
    step = records[0].step
    if step % EVERY:
        return
    # Free memory is given back first: when the allocator does that by itself is chance, some percent of the total.
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    taken = {
        "step": step,
        "resident": int(status["VmRSS"].split()[0]) / 1024,
        "peak": int(status["VmHWM"].split()[0]) / 1024,
        "descriptors": len(os.listdir("/proc/self/fd")) - 1,  # except the one that lists them
        "threads": int(status["Threads"]),
    }
    with open(os.environ["ENDURANCE_NOTES"], "a") as file:
        file.write(json.dumps(taken) + "\n")
