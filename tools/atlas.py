"""Projects the time of an iteration under each of several constraints, for experiments of gin/published and hardware.

    python tools/atlas.py [NAME ...] [--constraints NAMES] [--topology NAMES] [--param NAME=VALUE] [--install]

A plan as by `ganlab plan --no-optimize`, with one constraint of the critic in the place of the file's own, and with
none. Prints a table of docs/performance.md for each experiment: the time of an iteration, in parentheses its ratio to
that without a constraint, and what limits it. Nothing is measured on these chips.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from ganlab_plan import Plan, place, plan
from ganlab_verify.report import Source
from publishing import compiling

import ganlab
from ganlab import config

NAMES = ("wgan_gp_mnist", "sngan_cifar10", "mimicry_sngan_64")
NONE = "none"
CONSTRAINTS = (
    NONE,
    "weight_clipping",
    "spectral_norm",
    "gradient_normalization",
    "gradient_penalty",
    "r1",
    "finite_difference_penalty",
)
TOPOLOGIES = ("v5e:2x2", "l4", "rtx4090", "a100", "h100", "h100:8")


def planned(name: str, constraint: str, topologies: list[str], params: list[str], *, install: bool) -> list[Plan]:
    """The plans of an experiment with one constraint of the critic, or none."""
    (file,) = (path for path in config.shipped_gin_files() if (path.parent.name, path.stem) == ("published", name))
    chosen = [] if constraint == NONE else [f"@constraints.{constraint}()"]
    settings = [f"experiment.constraints=[{', '.join(chosen)}]", *compiling.settings(config.load([file])), *params]
    source = Source((f"published/{name}",), tuple(settings), (), str(compiling.GREY_IMAGES))
    return plan(source, [place(one) for one in topologies], install=install, optimize=False)


def cell(found: Plan, bare: Plan | None) -> str:
    """One place of a row: `12.3 ms (1.45), compute`."""
    if found.time is None:
        return found.limit or "cannot be compiled"
    ratio = f" ({found.time.total / bare.time.total:.2f})" if bare is not None and bare.time else ""
    return f"{1e3 * found.time.total:.3g} ms{ratio}, {found.limit}"


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"files; by default {', '.join(NAMES)}")
    parser.add_argument("--constraints", default=",".join(CONSTRAINTS), metavar="NAMES")
    parser.add_argument("--topology", default=",".join(TOPOLOGIES), metavar="NAMES")
    parser.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="a further setting")
    parser.add_argument("--install", action="store_true", help="install the TPU compiler (600 MB) if it is missing")
    given = parser.parse_args()
    topologies = given.topology.split(",")
    known = {path.stem for path in config.shipped_gin_files() if path.parent.name == "published"}
    if unknown := sorted(set(given.names) - known):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    for name in given.names or NAMES:
        print(
            f"\n**{name}**\n\n| constraint | {' | '.join(topologies)} |\n|{'---|' * (len(topologies) + 1)}", flush=True
        )
        bare: list[Plan] = []
        for constraint in given.constraints.split(","):
            try:
                found = planned(name, constraint, topologies, given.param, install=given.install)
            except ganlab.GanlabError as error:
                print(f"| {constraint} | {error} |", flush=True)
                continue
            bare = found if constraint == NONE else bare
            pairs = zip(found, bare if bare and constraint != NONE else [None] * len(found), strict=True)
            print(f"| {constraint} | {' | '.join(cell(one, base) for one, base in pairs)} |", flush=True)


if __name__ == "__main__":
    main()
