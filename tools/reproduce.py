"""Reproduces published figures and claims about Lipschitz-constrained critics.

    python tools/reproduce.py --list
    python tools/reproduce.py wgan_gp_fig1_gradients
    python tools/reproduce.py mode_coverage --full -o coverage

Writes table.md, claims.json and pictures, prints the table, and exits with 1 if a claim does not hold. `--quick`, the
default, is small enough for ten minutes on two cores and prints its sizes; `--full` takes the papers' networks and
batches, and as many updates as a GPU does in hours.
docs/results.md has the results.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import importlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

NAMES = (
    "wgan_gp_fig1_surfaces",
    "wgan_gp_fig1_gradients",
    "wgan_gp_fig1_weights",
    "mode_coverage",
    "exact_w1",
    "depth_sweep",
)


def module(name: str) -> ModuleType:
    """The module of one reproduction, which imports TensorFlow."""
    from ganlab.cli.quiet_start import start_tensorflow

    start_tensorflow()
    return importlib.import_module(f"reproductions.{name}")


def summary(name: str) -> str:
    """The summary of a reproduction, in one line, without importing it."""
    source = Path(__file__).with_name("reproductions") / f"{name}.py"
    return (ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or "").splitlines()[0]


def reproduce(name: str, size: str, folder: Path) -> bool:
    """Runs one reproduction and writes its results.

    Args:
        name: A name in `NAMES`.
        size: "quick" or "full".
        folder: The folder for tables, claims and pictures.

    Returns:
        Whether every claim holds.
    """
    from ganlab.runs.provenance import git_state

    made, command = module(name), f"python tools/reproduce.py {name} --{size}"
    measures = dataclasses.asdict(made.SIZES[size])
    described = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in measures.items())
    print(f"{name}, {size}: {described}", flush=True)
    git = git_state(Path(__file__).parent) or {}
    begun = time.monotonic()
    report = made.reproduce(made.SIZES[size])
    seconds = round(time.monotonic() - begun)
    report.write(
        folder,
        {
            "reproduction": name,
            "size": {"name": size, **measures},
            "command": command,
            "commit": git.get("commit"),
            "seconds": seconds,
        },
    )
    print(f"\n{report.markdown()}\n{seconds} s; written to {folder}")
    return report.passed


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", choices=NAMES, help="the reproduction to run")
    parser.add_argument("--list", action="store_true", help="list the reproductions")
    size = parser.add_mutually_exclusive_group()
    for name, help_ in (
        ("quick", "ten minutes on two cores at most (the default)"),
        ("full", "the papers' networks, for hours"),
    ):
        size.add_argument(f"--{name}", dest="size", action="store_const", const=name, help=help_)
    parser.add_argument("-o", "--output", type=Path, help="the folder to write to [runs/reproductions/NAME]")
    given = parser.parse_args(arguments)
    if given.list or given.name is None:
        width = max(map(len, NAMES))
        print("\n".join(f"{name:<{width}}  {summary(name)}" for name in NAMES))
        return 0 if given.list else 2
    folder = given.output or Path("runs") / "reproductions" / given.name
    return 0 if reproduce(given.name, given.size or "quick", folder) else 1


if __name__ == "__main__":
    sys.exit(main())
