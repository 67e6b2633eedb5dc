"""Verifies the files of gin/published with narrow networks, or compiles them as they are for TPU slices.

    python tools/published.py [NAME ...] [--checks gradients,replicas,graph,microbatches]
    python tools/published.py [NAME ...] --compile [--topology NAMES] [--param NAME=VALUE] [--install] [--optimize]

Images are others, of the same shape. Each file is verified by `ganlab verify`, on 1 and 2 replicas for two iterations,
or planned by `ganlab plan --no-optimize` at its full width and batch. A line of docs/published.md's tables is printed
for each; what did not pass, and the notes of a plan, go to standard error.
"""

from __future__ import annotations

import argparse
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from publishing import compiling
from publishing.datasets import data

import ganlab
from ganlab import config
from ganlab.plugins.recipes import Recipe

# Parameters that make a component small, where it has them.
SMALL = {"width": 8, "channels": 8, "generator_channels": None, "critic_channels": None, "samples": 64}
BATCH = 8


def recipes(value: object) -> Iterator[Recipe]:
    """Every component of an experiment, at any depth."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from recipes(item)
    elif isinstance(value, Recipe):
        yield value
        yield from recipes(list(value.arguments.values()))


def settings(experiment: Recipe) -> list[str]:
    """The settings that make an experiment small and give it images that are here."""
    given = experiment.arguments
    found = [f"experiment.batch_size={BATCH * given.get('microbatches', 1)}"]
    found += ["experiment.strategy=@strategies.one_device()"]
    found += [f"experiment.critic_steps={min(2, given.get('critic_steps', 1))}"]
    if "generator_batch_size" in given:
        found.append(f"experiment.generator_batch_size={2 * BATCH}")
    for recipe in recipes(list(given.values())):
        known = inspect.signature(ganlab.component(recipe.kind, recipe.name)).parameters
        found += [f"{recipe.kind}.{recipe.name}.{name}={size}" for name, size in SMALL.items() if name in known]
    images = data(experiment)
    dataset = "glyphs" if images.channels == 1 else "photo_patches"
    return [*found, f"{images.place}=@datasets.{dataset}()", f"datasets.{dataset}.side={images.side}"]


def verified(name: str, experiment: Recipe, checks: list[str], params: list[str]) -> str:
    """A row of the table: each check with its status, and its reason if it did not pass."""
    command = [sys.executable, "-m", "ganlab", "verify", "--gin", f"published/{name}", "--json"]
    command += ["--checks", ",".join(checks), "--replicas", "1,2", "--iterations", "2"]
    for setting in [*settings(experiment), *params]:
        command += ["--param", setting]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        rows = json.loads(done.stdout)["experiments"][0]["rows"]
    except (ValueError, KeyError, IndexError):
        return f"| {name} | {(done.stderr.strip() or done.stdout.strip()).splitlines()[-1]} |"
    for row in rows:
        if row["status"] != "passed":
            print(f"{name}, {row['check']}: {row['detail']}", file=sys.stderr, flush=True)
    found = {row["check"]: row["status"] for row in rows}
    return f"| {name} | {' | '.join(found.get(check, '') for check in checks)} |"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="files; by default all")
    parser.add_argument("--checks", default="gradients,replicas,graph,microbatches")
    parser.add_argument("--compile", action="store_true", help="compile the files as they are, and verify nothing")
    parser.add_argument("--topology", default="", metavar="NAMES", help="slices; by default those that suit each file")
    parser.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="a further setting")
    parser.add_argument("--optimize", action="store_true", help="compile as for a run, in about ten times the time")
    parser.add_argument("--install", action="store_true", help="install the TPU compiler (600 MB) if it is missing")
    given = parser.parse_args()
    files = {path.stem: path for path in config.shipped_gin_files() if path.parent.name == "published"}
    if unknown := [name for name in given.names if name not in files]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(files)}")
    for name in given.names or files:
        experiment = config.load([files[name]])
        if not given.compile:
            print(verified(name, experiment, given.checks.split(","), given.param), flush=True)
            continue
        topologies = [one for one in given.topology.split(",") if one]
        try:
            options = {"install": given.install, "optimize": given.optimize}
            plans = compiling.compiled(name, experiment, topologies, given.param, **options)
        except ganlab.GanlabError as error:
            print(f"| {name} | {error} |", flush=True)
            continue
        for plan in plans:
            print(compiling.row(name, plan), flush=True)
            for note in plan.notes:
                print(f"{name}, {plan.topology}: {note}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
