"""Measures the memory, open files and threads of a long run, which must not grow.

    python tools/endurance.py
    python tools/endurance.py --iterations 50000 --param experiment.evaluate_every=2000 --json endurance.json

Trains the eight Gaussians with a row at every step, and evaluations, diagnostics and checkpoints now and then.
After a warm-up, in which everything is traced once and buffers reach their size, it prints for each thousand iterations
the median of the resident memory, free pages given back. It exits with 1 if that grows by more than 2%, or if the
number of open files or of threads grows at all. Needs Linux with glibc.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_PLUGIN = Path(__file__).with_name("enduring") / "ganlab_plugins.py"
_DIAGNOSTICS = ("gradient_norms", "lipschitz_interval", "singular_values", "slopes", "surface", "units", "weights")
_MOST_GROWTH = 0.02


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 1 if something grew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gin", default="eight_gaussians", help="the experiment (default eight_gaussians)")
    parser.add_argument("--param", action="append", default=[], help="an override, as of `ganlab run`")
    parser.add_argument("--iterations", type=int, default=10_000, help="after the warm-up (default 10000)")
    parser.add_argument("--warm-up", type=int, default=2_000, help="iterations before (default 2000)")
    parser.add_argument("--blocks", type=int, default=10, help="rows of the table (default 10)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="ganlab-endurance-") as folder:
        notes = train(options, Path(folder))
        rows = sum(path.read_bytes().count(b"\n") for path in Path(folder).rglob("metrics.jsonl")) or 1
        files = {"event files": "events.out.tfevents.*", "metrics.jsonl": "metrics.jsonl"}
        sizes = {f"{name}, bytes a row": _size(Path(folder), pattern) / rows for name, pattern in files.items()}
    blocks = blocked([note for note in notes if note["step"] > options.warm_up], options.blocks)
    growth = {key: blocks[-1][key] / blocks[0][key] - 1 for key in ("resident", "descriptors", "threads")}
    print(table(blocks))
    print(f"\nResident memory grew by {growth['resident']:+.2%} in {options.iterations} iterations.")
    print(f"Open files: {growth['descriptors']:+.0%}; threads: {growth['threads']:+.0%}.")
    print(", ".join(f"{name}: {size:.0f}" for name, size in sizes.items()) + ".")
    if options.json:
        options.json.write_text(json.dumps({"blocks": blocks, "growth": growth, **sizes}, indent=1) + "\n")
    return int(growth["resident"] > _MOST_GROWTH or growth["descriptors"] > 0 or growth["threads"] > 0)


def train(options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """Trains in its own process, and returns its resources at every hundredth step."""
    looks = ", ".join(f"@diagnostics.{name}()" for name in _DIAGNOSTICS)
    params = {
        "experiment.steps": str(options.warm_up + options.iterations),
        "experiment.log_every": "1",
        "experiment.evaluate_every": "500",
        "experiment.checkpoint_every": "500",
        "experiment.diagnostics": f"[{looks}]",
        **dict(param.split("=", 1) for param in options.param),
    }
    notes = folder / "notes"
    command = [sys.executable, "-m", "ganlab", "run", "--gin", options.gin, "--plugin-file", str(_PLUGIN)]
    command += [part for name, value in params.items() for part in ("--param", f"{name}={value}")]
    command += ["--runs", str(folder), "--name", "long"]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "ENDURANCE_NOTES": str(notes)}
    done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(f"The run failed with {done.returncode}.")
    return [json.loads(line) for line in notes.read_text().splitlines()]


def blocked(notes: Sequence[dict[str, Any]], count: int) -> list[dict[str, float]]:
    """The notes in blocks: medians of memory, the most of the rest."""
    size = max(1, len(notes) // count)
    return [
        {
            "step": part[-1]["step"],
            "resident": statistics.median(note["resident"] for note in part),
            **{key: max(note[key] for note in part) for key in ("peak", "descriptors", "threads")},
        }
        for part in (notes[i : i + size] for i in range(0, size * count, size))
        if part
    ]


def table(blocks: Sequence[dict[str, float]]) -> str:
    """The blocks as Markdown."""
    lines = ["| until step | resident, MiB | peak, MiB | open files | threads |", "|---:|---:|---:|---:|---:|"]
    form = "| {step:.0f} | {resident:.1f} | {peak:.1f} | {descriptors:.0f} | {threads:.0f} |"
    return "\n".join([*lines, *(form.format(**block) for block in blocks)])


def _size(folder: Path, pattern: str) -> int:
    return sum(path.stat().st_size for path in folder.rglob(pattern))


if __name__ == "__main__":
    sys.exit(main())
