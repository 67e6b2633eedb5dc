"""Stops runs in many ways, resumes them, and compares them bit for bit with a run that was never stopped.

    python tools/chaos.py --kills 10
    python tools/chaos.py --kills 100 --seed 1 --jobs 2 --json chaos.json
    python tools/chaos.py --kills 20 --gin mine.gin --param experiment.steps=500
    python tools/chaos.py --kills 10 --only SIGTERM

Each run is stopped several times: by signals at random moments; in the middle of a write, an fsync or a rename of its
files; by a loss of power, which takes whatever no fsync made safe; by a disk that is full or read-only; and with its
newest checkpoint damaged. Every checkpoint that a stopped run left is compared, and for the run that completed also the
weights, the optimizers, the average, the constraints' state, metrics.jsonl, the event files, the pictures and run.json.

Exits with 1 if anything differs, or if a process did not end as it must. Needs Linux and a C compiler.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

_DIGITS = Path(__file__).with_name("killing") / "digits.gin"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 1 if a run differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gin", default=str(_DIGITS), help="the experiment; by default digits on two replicas")
    parser.add_argument("--param", action="append", default=[], help="an override, as of `ganlab run`")
    parser.add_argument("--kills", type=int, default=10, help="how often runs are stopped in total (default 10)")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only this kind: SIGTERM, say")
    parser.add_argument("--seed", type=int, default=0, help="decides how and when (default 0)")
    parser.add_argument(
        "--reach", type=float, default=0.5, help="most of a run before a kill, from 0 to 1 (default .5)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time (default 1)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the runs in this folder")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what happened to a file")
    options = parser.parse_args(arguments)
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        return _kill(options, options.keep.resolve())
    with tempfile.TemporaryDirectory(prefix="ganlab-chaos-") as folder:
        return _kill(options, Path(folder).resolve())


def _kill(options: argparse.Namespace, folder: Path) -> int:
    from ganlab.cli.quiet_start import start_tensorflow

    start_tensorflow()
    from killing.chains import Bench, Kill
    from killing.faults import build
    from killing.kinds import KINDS
    from killing.processes import Experiment

    given = [part for param in options.param for part in ("--param", param)]
    experiment = Experiment(("--gin", options.gin, *given), Path(options.gin).stem, folder)
    kinds = [kind for kind in KINDS if not options.only or kind.name in options.only]
    if not kinds:
        raise SystemExit(f"--only {options.only}: unknown. Choose from {[kind.name for kind in KINDS]}.")
    bench = Bench(experiment, build(folder), kinds, kills=options.kills, seed=options.seed, reach=options.reach)
    begun = time.monotonic()
    reference = bench.reference()
    print(
        f"The run that is not stopped: {reference.run.info['step']} steps in {reference.seconds:.1f} s; of variables "
        + ", ".join(f"{count} of {group}" for group, count in reference.variables.items() if count),
        flush=True,
    )

    def say(kill: Kill) -> None:
        state = "WRONG: " + "; ".join(kill.wrong) if kill.wrong else "well so far"
        print(
            f"{kill.run}: {kill.kind} at step {kill.step}, back to {kill.resumed_from} ({kill.detail}): {state}",
            flush=True,
        )

    with ThreadPoolExecutor(options.jobs) as pool:
        chains = list(pool.map(lambda _: list(bench.chain(reference, say)), range(options.jobs)))
    runs = [kills for chain in chains for kills in chain if kills]
    kills = [kill for run in runs for kill in run]
    seconds = time.monotonic() - begun
    wrong = [kill for kill in kills if kill.wrong]
    print(f"\n{table(kills)}\n")
    print(
        f"{len(kills) - len(wrong)} of {len(kills)} kills of {len(runs)} runs came to the same end, in {seconds:.0f} s."
    )
    for kill in wrong:
        more = f" and {len(kill.wrong) - 5} more" if len(kill.wrong) > 5 else ""
        print(f"  {kill.run}, {kill.kind}: {'; '.join(kill.wrong[:5])}{more}")
    if options.json:
        what = {"kills": [asdict(kill) for kill in kills], "variables": reference.variables, "seconds": seconds}
        options.json.write_text(json.dumps(what, indent=1) + "\n")
    return 1 if wrong else 0


def table(kills: Sequence[Any]) -> str:
    """The results by kind, as Markdown: steps as least, median and most."""
    rows = [("stopped by", "times", "at step", "steps done again", "from the start", "to the end, s", "equal")]
    for kind in [*dict.fromkeys(sorted(kill.kind for kill in kills)), "all"]:
        those = [kill for kill in kills if kind in (kill.kind, "all")]
        rows.append(
            (
                kind,
                str(len(those)),
                _spread([kill.step for kill in those]),
                _spread([kill.step - kill.resumed_from for kill in those]),
                str(sum(kill.resumed_from == 0 for kill in those)),
                f"{max(kill.seconds for kill in those):.1f}" if any(kill.seconds for kill in those) else "",
                f"{sum(not kill.wrong for kill in those)} of {len(those)}",
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def _spread(values: Sequence[int]) -> str:
    return f"{min(values)}, {statistics.median(values):.0f}, {max(values)}"


if __name__ == "__main__":
    sys.exit(main())
