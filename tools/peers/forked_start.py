"""The start of the hand-written loop of tf_loop.py in processes that are forked as a sweep's trials are.

    python tools/peers/forked_start.py COUNT

Forks that many processes at a time, three times, from one that has imported what training needs, and prints the median
of the seconds that one takes, beyond an iteration, until its first iteration is done.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ganlab
from peers import tf_loop

_ROUNDS, _ITERATIONS = 3, 10
_BATCH = 64  # that of a trial of the benchmark


def start() -> float:
    """The seconds to the end of a first iteration, less those of a later one."""
    begun = time.perf_counter()
    loop = tf_loop.Loop(tf_loop.mlp(batch=_BATCH))
    loop(1)
    first = time.perf_counter()
    loop(_ITERATIONS)
    return first - begun - (time.perf_counter() - first) / _ITERATIONS


def forked(count: int) -> list[float]:
    """The same in several processes at a time."""
    pipes, processes = [os.pipe() for _ in range(count)], []
    for _, writing in pipes:
        process = os.fork()
        if process == 0:
            os.write(writing, f"{start()}\n".encode())
            os._exit(0)
        os.close(writing)
        processes.append(process)
    for process in processes:
        os.waitpid(process, 0)
    return [float(os.read(reading, 64)) for reading, _ in pipes]


if __name__ == "__main__":
    ganlab.preload()
    gc.collect()
    gc.freeze()
    print(statistics.median(one for _ in range(_ROUNDS) for one in forked(int(sys.argv[1]))))
