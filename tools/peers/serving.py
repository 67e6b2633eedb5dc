"""Serves a training to another process that times it: takes a number of iterations, and reports how long they took."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

Train = Callable[[int], object]


def serve(trainer: Callable[[str], Train]) -> None:
    """Answers each line on standard input, a number of iterations, with the time they took.

    Args:
        trainer: Makes a training function from the model's name, which is the only argument of the command.
    """
    train = trainer(sys.argv[1])
    for line in sys.stdin:
        begun = time.perf_counter()
        train(int(line))
        answer(int(line), time.perf_counter() - begun)


def answer(iterations: int, seconds: float) -> None:
    """Prints, as a line of JSON, the iterations, their time, and the most memory held so far."""
    print(json.dumps({"iterations": iterations, "seconds": seconds, "bytes": peak_bytes()}), flush=True)


def peak_bytes() -> int:
    """The most memory that this process has held, as recorded by the kernel; 0 if unknown."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return 0
