"""Benchmarks: the cost of ganlab, as ratios measured in one run.

    python tools/bench.py
    python tools/bench.py loops replicas --rounds 5 --json
    python tools/bench.py --device gpu --torch PYTHON --jax PYTHON
    python tools/bench.py sngan --device gpu --precision float32 tensorfloat32 --torch PYTHON --mimicry FOLDER

Everything is timed in turn with what it is compared with, in several rounds. The medians of the rounds' ratios are
printed with their quartiles and, if there is one, the bar that they have to stay under. Other work on the machine makes
the quartiles wide: then run again. On a GPU, which others rarely share, the times of an iteration are printed instead.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parent))

from benchmarks import engine, gpu, launches, loops, many, replicas, whole_runs
from benchmarks.pairs import Figure, Ratio
from benchmarks.setting import Setting
from peers.serving import PRECISIONS

# Families with their own processes come first: afterwards this one holds TensorFlow's threads and memory. `guards`
# splits the CPU, which must precede any other use of TensorFlow here.
FAMILIES: dict[str, Callable[..., list[Ratio | Figure]]] = {
    "loops": loops.loops,
    "precision": loops.precision,
    "telemetry": loops.telemetry,
    "starting": loops.starting,
    "microbatches": replicas.microbatches,
    "replicas": replicas.replicas,
    "processes": replicas.processes,
    "trials": whole_runs.trials,
    "beside": whole_runs.beside,
    "guards": engine.guards,
    "limit": engine.limit,
    "constraints": engine.constraints,
    "tracing": engine.tracing,
    "launches": launches.launches,
    "programs": launches.programs,
    "diagnostics": engine.diagnostics,
    "many": many.many,
}

# Those that need to know with what.
PEERS = ("loops", "precision")


def measure(names: Sequence[str], rounds: int, setting: Setting) -> dict[str, list[Ratio | Figure]]:
    """The figures of each family, also printed to standard error as they come; none for a family that fails."""
    results: dict[str, list[Ratio | Figure]] = {}
    for name in names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        given = {"setting": setting} if name in PEERS else {}
        try:
            results[name] = FAMILIES[name](rounds, **given)
        except Exception as error:  # keep the others' figures, which took half an hour
            traceback.print_exception(error)
            continue
        for row in results[name]:
            print("  " + " | ".join(cells(row)), file=sys.stderr, flush=True)
    return results


def cells(row: Ratio | Figure) -> list[str]:
    """A row of the table: name, figure, its quartiles, the bar."""
    bar = "" if row.bar is None else f"{row.bar:.2f}"
    if isinstance(row, Figure):
        return [row.name, f"{row.value:.3g} {row.unit}", "", bar]
    low, high = row.quartiles
    return [row.name, f"{row.median:.3f}", f"{low:.3f} to {high:.3f}" if len(row.pairs) > 1 else "", bar]


def table(results: dict[str, list[Ratio | Figure]]) -> str:
    """The figures as Markdown, one table per family, under the first line of its docstring."""
    lines = []
    for name, rows in results.items():
        about = (FAMILIES[name].__doc__ or "").strip().splitlines()[0]
        lines += [f"**{name}.** {about}", "", "| what | ratio | quartiles | bar |", "|---|---|---|---|"]
        lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    """Measures the named families, or all; returns 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="FAMILY", help=f"which, of {', '.join(FAMILIES)}; all by default")
    parser.add_argument("--only", nargs="+", default=[], metavar="FAMILY", help="the same")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help=f"gpu: for {', '.join(gpu.SECTIONS)}")
    parser.add_argument("--torch", default="", metavar="PYTHON", help="an interpreter that has PyTorch")
    parser.add_argument("--jax", default="", metavar="PYTHON", help="an interpreter that has JAX")
    parser.add_argument("--mimicry", default="", metavar="FOLDER", help="where torch_mimicry is")
    parser.add_argument("--precision", nargs="+", default=["float32"], choices=PRECISIONS, help="on a GPU")
    parser.add_argument("--jit", nargs="+", default=["auto"], choices=("auto", "off", "on", "step"), help="on a GPU")
    parser.add_argument("--start", type=float, default=300.0, metavar="SECONDS", help="the most for a start")
    parser.add_argument("--json", action="store_true", help="print JSON, with every round")
    arguments = parser.parse_args()
    known = list(gpu.SECTIONS if arguments.device == "gpu" else FAMILIES)
    names = [*arguments.names, *arguments.only] or known
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no family {unknown[0]!r} on a {arguments.device.upper()}; there are {', '.join(known)}")
    given = arguments.torch, arguments.jax, tuple(arguments.precision), tuple(arguments.jit), arguments.start
    setting = Setting(arguments.device, *given)
    problem, card = setting.look()
    if problem:
        parser.error(problem)
    if arguments.device == "gpu":
        os.environ["MIMICRY"] = arguments.mimicry or os.environ.get("MIMICRY", "")
        times = {}
        for name in names:
            times[name] = gpu.measure(name, setting, arguments.rounds)
            print(gpu.table({name: times[name]}, card), file=sys.stderr, flush=True)
        print((gpu.as_json if arguments.json else gpu.table)(times, card))
        return int(any(row.failure for rows in times.values() for row in rows))
    results = measure(names, arguments.rounds, setting)
    if arguments.json:
        figures = {name: [row.as_json() for row in rows] for name, rows in results.items()}
        machine = {"machine": platform.processor(), "cores": os.cpu_count(), "device": arguments.device}
        print(json.dumps({**machine, "figures": figures}, indent=2))
    else:
        print(table(results))
    return int(len(results) < len(names))


if __name__ == "__main__":
    sys.exit(main())
