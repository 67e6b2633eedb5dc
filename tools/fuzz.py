"""Fuzzes ganlab's file readers until something other than a `GanlabError` is raised.

    python tools/fuzz.py --minutes 5
    python tools/fuzz.py --minutes 1 --only gin --only events --seed 7

Targets: experiment files, every JSON file, metrics.jsonl, run directories, event files, checkpoints, archives, and the
tab's requests, each for so many minutes. Prints the number of inputs of each, and the smallest input that shows a
fault. Exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Sequence

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# Inputs per seed; then the next seed, because hypothesis slows down when it has seen many.
_ROUND = 1000


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 1 if a fault was found."""
    from fuzzing import TARGETS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0, help="for each target (default 1)")
    parser.add_argument("--only", action="append", choices=sorted(TARGETS), help="this target; may be given again")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default 0)")
    options = parser.parse_args(arguments)
    found = [_fuzz(name, 60 * options.minutes, options.seed) for name in options.only or TARGETS]
    return int(any(found))


def _fuzz(name: str, seconds: float, number: int) -> bool:
    from fuzzing import examples

    began, tried = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        try:
            tried += examples(name, _ROUND, number=number)
        except Exception:
            traceback.print_exc()
            print(f"{name}: a fault with seed {number}, after {tried} inputs", flush=True)
            return True
        number += 1
    print(f"{name}: {tried} inputs in {time.monotonic() - began:.0f} s, no fault", flush=True)
    return False


if __name__ == "__main__":
    sys.exit(main())
