"""Verifies the files of gin/published with narrow networks, on other images of their shapes.

    python tools/published.py [NAME ...] [--checks gradients,replicas,graph,microbatches]

Each file goes through `ganlab verify` in a process of its own; a line of docs/published.md's table is printed for each.
"""

from __future__ import annotations

import argparse
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator

import ganlab
from ganlab import config
from ganlab.plugins.recipes import Recipe

# Parameters that make a component small, where it has them.
SMALL = {"width": 8, "channels": 8, "generator_channels": None, "critic_channels": None, "samples": 64}
SIDES = {"mnist": 28, "cifar10": 32}


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
    found = ["experiment.batch_size=8", "experiment.strategy=@strategies.one_device()", "experiment.microbatches=1"]
    found.append(f"experiment.critic_steps={min(2, experiment.arguments.get('critic_steps', 1))}")
    for recipe in recipes(list(experiment.arguments.values())):
        known = inspect.signature(ganlab.component(recipe.kind, recipe.name)).parameters
        found += [f"{recipe.kind}.{recipe.name}.{name}={size}" for name, size in SMALL.items() if name in known]
    dataset, place = experiment.arguments["dataset"], "experiment.dataset"
    while inner := dataset.arguments.get("dataset"):
        place, dataset = f"datasets.{dataset.name}.dataset", inner
    name = dataset.arguments["name"]
    images = "glyphs" if name == "mnist" else "photo_patches"
    side = dataset.arguments.get("resize") or SIDES[name]
    return [*found, f"{place}=@datasets.{images}()", f"datasets.{images}.side={side}"]


def verified(name: str, experiment: Recipe, checks: list[str]) -> str:
    """A row of the table: each check with its status, and its reason if it did not pass."""
    command = [sys.executable, "-m", "ganlab", "verify", "--gin", f"published/{name}", "--json"]
    command += ["--checks", ",".join(checks), "--replicas", "1,2", "--iterations", "2"]
    for setting in settings(experiment):
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="files; by default all")
    parser.add_argument("--checks", default="gradients,replicas,graph,microbatches")
    given = parser.parse_args()
    for path in config.shipped_gin_files():
        if path.parent.name == "published" and (not given.names or path.stem in given.names):
            print(verified(path.stem, config.load([path]), given.checks.split(",")), flush=True)


if __name__ == "__main__":
    main()
