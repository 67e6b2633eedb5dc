"""Projects the time of an iteration on TPU slices that are not at hand; this is not a measurement.

    python tools/projection.py
    python tools/projection.py --gin mine.gin --batch 1024 --json

The training step is compiled for the chip, as `ganlab verify --checks tpu` does, at two batches. Its arithmetic, memory
traffic and reductions over replicas are the TPU compiler's counts. Times are these over the data sheet's rates, so the
best that a slice could do, except for `--efficiency`. The rate of input is measured on this machine.

Prints a table for a fixed global batch (strong scaling) and one for a fixed batch per chip (weak scaling).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import asdict
from pathlib import Path

from ganlab_plan.times import Cost, time
from projecting.model import SLICES, Costs
from projecting.tables import Projection, compiled_lines

_TOPOLOGIES = {"v5e": "v5e:2x2", "v5p": "v5p:2x2x1"}
_GIN = Path(__file__).with_name("projecting") / "dcgan64.gin"


def main() -> int:
    """Compiles, computes and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gin", default=str(_GIN), help="the experiment; by default a DCGAN at 64 pixels")
    parser.add_argument("--param", action="append", default=[], help="an override, as of `ganlab run`")
    parser.add_argument(
        "--precision",
        choices=["float32", "mixed_bfloat16"],
        default="mixed_bfloat16",
        help="of the experiment (default mixed_bfloat16; float32 takes the compiler some ten minutes per program)",
    )
    parser.add_argument("--small", type=int, default=8, help="the smaller compiled batch of a chip (default 8)")
    parser.add_argument("--large", type=int, default=64, help="the larger one, and weak scaling's (default 64)")
    parser.add_argument("--batch", type=int, default=1024, help="the global batch of strong scaling (default 1024)")
    parser.add_argument("--efficiency", type=float, default=0.5, help="of products, relative to the peak (default .5)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()

    from ganlab.cli.quiet_start import start_tensorflow

    start_tensorflow()
    from projecting.decoding import decoding_rate

    rate = decoding_rate()
    counts = {chip: compiled(options, chip, rate) for chip in _TOPOLOGIES}
    projections = [projection(options, counts, strong=strong) for strong in (True, False)]
    if options.json:
        costs = {chip: asdict(found) for chip, found in counts.items()}
        made = {"bytes_a_second_and_core": rate, "compiled": costs, "projections": [p.as_json() for p in projections]}
        print(json.dumps(made, indent=2))
        return 0
    print(f"Input: {rate / 1e6:.0f} MB of float32 examples per second and core from PNG files, measured here.\n")
    print("\n".join(compiled_lines(counts)))
    for one in projections:
        print("\n".join(one.lines()))
    return 0


def projection(options: argparse.Namespace, counts: dict[str, Costs], *, strong: bool) -> Projection:
    """The times on every slice that has an example for each chip."""
    rows = []
    for name, where in SLICES.items():
        batch = options.batch / where.chips if strong else options.large
        if batch >= 1:
            cost = counts[where.chip.name].at(batch)
            spent = time(cost, where, precision=options.precision, fraction=options.efficiency)
            rows.append((name, where, batch, spent))
    return Projection(options.precision, f"{options.batch} in all" if strong else f"{options.large} on each chip", rows)


def compiled(options: argparse.Namespace, chip: str, rate: float) -> Costs:
    """The compiler's counts for one chip at both batches, with examples made at a rate of bytes per core-second."""
    from ganlab_verify.report import Source
    from ganlab_verify.tpu.checking import check

    made = []
    for batch in (options.small, options.large):
        print(f"Compiling for {chip}, {batch} on a chip ...", file=sys.stderr, flush=True)
        given = (*options.param, f"experiment.batch_size={4 * batch}", f"experiment.precision='{options.precision}'")
        row = check(Source((options.gin,), given), topology=_TOPOLOGIES[chip])
        if row.status != "passed":
            raise SystemExit(row.detail)
        data, reduced = row.data, row.data["compiled_all_reduces"]
        counts = data["bytes_accessed"], reduced["count"], reduced["bytes"], data["memory"]["total"]
        seconds = batch * _bytes_of_an_example(options) / rate
        made.append(Cost(data["flops"], {"float32": data["flops"]}, *counts, input_seconds=seconds))
    return Costs(options.small, options.large, *made)


def _bytes_of_an_example(options: argparse.Namespace) -> float:
    """Bytes of real examples that a chip gets in an iteration, for each example of its batch."""
    from ganlab.composition import compose
    from ganlab.config import load

    experiment = compose(load([options.gin], options.param))
    return 4.0 * experiment.critic_steps * math.prod(experiment.dataset.sample_shape)


if __name__ == "__main__":
    sys.exit(main())
