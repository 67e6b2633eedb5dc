"""Serves a training to another process that times it: takes a number of iterations, and reports how long they took.

A peer's command is `python tools/peers/PEER.py MODEL [--device cpu|gpu] [--precision PRECISION]`. It prints a line
of JSON for each line on standard input, a number of iterations; or one with an `error`, if it cannot train there.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

Train = Callable[[int], object]
PRECISIONS = ("float32", "tensorfloat32", "mixed_bfloat16")


@dataclass(frozen=True)
class Asked:
    """A request to a peer: the model to train, and how.

    Attributes:
        kind: The model, `mlp`, `dcgan` or `sngan`.
        device: `cpu` or `gpu`, the first of them.
        precision: `float32`; `tensorfloat32`, for products whose factors are rounded; or `mixed_bfloat16`, for networks
            in bfloat16, with weights and losses in float32.
    """

    kind: str
    device: str = "cpu"
    precision: str = "float32"


def asked() -> Asked:
    """Reads the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("mlp", "dcgan", "sngan"))
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--precision", choices=PRECISIONS, default="float32")
    return Asked(**vars(parser.parse_args()))


def serve(trainer: Callable[[Asked], Train], given: Asked | None = None) -> None:
    """Answers each line on standard input, a number of iterations, with the time they took.

    Args:
        trainer: Makes a training function, which returns when the iterations are done and not when they are queued.
        given: What is asked; by default the command line's.
    """
    train = trainer(given or asked())
    for line in sys.stdin:
        begun = time.perf_counter()
        train(int(line))
        answer(int(line), time.perf_counter() - begun)


def answer(iterations: int, seconds: float) -> None:
    """Prints, as a line of JSON, the iterations, their time, and the most memory held so far."""
    print(json.dumps({"iterations": iterations, "seconds": seconds, "bytes": peak_bytes()}), flush=True)


def refuse(reason: str) -> NoReturn:
    """Ends the process, with the reason for the one that started it."""
    print(json.dumps({"error": reason}), flush=True)
    raise SystemExit(reason)


def peak_bytes() -> int:
    """The most memory of the host that this process has held, as recorded by the kernel; 0 if unknown."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return 0
