"""Trains critics on the pairs of published.csv and prints what they reach beside it: the table of docs/results.md.

    python tools/w1bench/reproduce.py --solvers gp sn --cells 16x64 64x64
    python tools/w1bench/reproduce.py --share 0.5 --seeds 0 1 2
    python tools/w1bench/reproduce.py --table

A run that has finished is not repeated, so that the table may be made in several sittings.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
CELLS = [(dims, funnels) for dims in (2, 16, 64) for funnels in (4, 64, 256)]


class Solver(NamedTuple):
    """What is trained, and the row of published.csv that it stands beside, with the updates given it there."""

    constraint: str
    published: str
    updates: int
    settings: Sequence[str] = ()


_COSINE = (
    "optimizers.adam.learning_rate=@schedules.cosine()",
    "schedules.cosine.start=1e-3",
    "schedules.cosine.end=0.0",
)


def _sorted(activation: str) -> Solver:
    betas = "optimizers.adam.beta_1=0.9", "optimizers.adam.beta_2=0.999"
    sorts = f"architectures.linear_critic.activation={activation!r}"
    return Solver("polar_projection", "sort-out", 25_000, (*betas, sorts))


SOLVERS = {
    "gp": Solver("gradient_penalty", "wgan-gp", 60_000),
    "gp-cosine": Solver("gradient_penalty", "wgan-gp", 60_000, _COSINE),
    "lp": Solver("lipschitz_penalty", "wgan-lp", 60_000, ("constraints.lipschitz_penalty.weight=10.0",)),
    "sn": Solver("spectral_norm", "sn-gan", 10_000, ("constraints.spectral_norm.power_iterations=5",)),
    "sn-held": Solver("held_spectral_norm", "sn-gan", 10_000),
    "max-min": _sorted("max_min"),
    "full-sort": _sorted("full_sort"),
}


def main() -> None:
    """Trains, unless told not to, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solvers", nargs="+", choices=SOLVERS, default=list(SOLVERS))
    parser.add_argument("--cells", nargs="+", type=_cell, default=CELLS, metavar="DIMSxFUNNELS")
    parser.add_argument("--share", type=float, default=1.0, help="of the published number of updates")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--runs", type=Path, default=Path("runs/w1bench"))
    parser.add_argument("--table", action="store_true", help="only print what has finished")
    options = parser.parse_args()
    for dims, funnels in [] if options.table else options.cells:
        for name in options.solvers:
            for seed in options.seeds:
                _train(options.runs, name, dims, funnels, seed, options.share)
    _print_table(options)


def _cell(text: str) -> tuple[int, int]:
    dims, funnels = text.split("x")
    return int(dims), int(funnels)


def _folder(runs: Path, name: str, dims: int, funnels: int, seed: int) -> Path:
    return runs / "pair" / f"{name}-{dims}-{funnels}-s{seed}"


def _train(runs: Path, name: str, dims: int, funnels: int, seed: int, share: float) -> None:
    folder, solver = _folder(runs, name, dims, funnels, seed), SOLVERS[name]
    if _status(folder) == "completed":
        return
    settings = [
        f"dims={dims}",
        f"datasets.min_funnels.funnels={funnels}",
        f"datasets.min_funnels.path={str(HERE / 'funnels.npz')!r}",
        f"experiment.constraints=[@constraints.{solver.constraint}()]",
        f"experiment.steps={round(share * solver.updates)}",
        f"experiment.seed={seed}",
        *solver.settings,
    ]
    command = [sys.executable, "-m", "ganlab", "run"]
    if folder.exists():
        command += ["--resume", str(folder), "--plugin-file", str(HERE / "ganlab_plugins.py")]
    else:
        command += ["--gin", str(HERE / "pair.gin"), "--runs", str(runs), "--name", folder.name]
        command += [part for setting in settings for part in ("--param", setting)]
    subprocess.run(command, check=True)


def _status(folder: Path) -> str | None:
    try:
        return json.loads((folder / "run.json").read_text(encoding="utf-8"))["status"]
    except FileNotFoundError:
        return None


def _reached(folder: Path) -> tuple[int, float, float] | None:
    """The updates, the cosine and the relative error at the end of a run; None if it has not ended."""
    if _status(folder) != "completed":
        return None
    found = None
    for text in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(text)
        values = {name.rsplit("/", 1)[1]: v for name, v in row["metrics"].items() if "/transport_gradient/" in name}
        if "cosine" in values:
            found = row["step"], values["cosine"]["reduced"], values["relative_error"]["reduced"]
    return found


def _published() -> dict[tuple[str, int, int], tuple[float, float]]:
    with open(HERE / "published.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    cost = {(r["solver"], int(r["dimension"]), int(r["funnels"])): float(r["cost"]) for r in rows}
    cosine = {(r["solver"], int(r["dimension"]), int(r["funnels"])): float(r["gradient_cosine"]) for r in rows}
    return {key: (cosine[key], cost[key] / cost[("true", *key[1:])] - 1.0) for key in cost}


def _print_table(options: argparse.Namespace) -> None:
    from scipy.stats import spearmanr

    published = _published()
    print("| solver | dimensions | funnels | seed | updates | cosine | published | W1 | published |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in options.solvers:
        pairs = []
        for dims, funnels in options.cells:
            cosine, error = published[SOLVERS[name].published, dims, funnels]
            for seed in options.seeds:
                reached = _reached(_folder(options.runs, name, dims, funnels, seed))
                if reached is not None:
                    row = (
                        f"| `{name}` | {dims} | {funnels} | {seed} | {reached[0]:,} | {reached[1]:.3f} | {cosine:.3f} "
                    )
                    print(row + f"| {reached[2]:+.1%} | {error:+.1%} |")
                    pairs.append((reached[1], cosine))
        if len({pair[1] for pair in pairs}) > 2:
            print(f"\n`{name}`: Spearman {spearmanr(*zip(*pairs, strict=True)).statistic:.3f} over {len(pairs)} rows\n")


if __name__ == "__main__":
    main()
