"""Run directories with known numbers, written as `ganlab run` writes them, without training."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ganlab.run import Run
from ganlab.runs import create_run
from ganlab.telemetry import JsonLinesWriter, Record
from ganlab.telemetry.plots import image_grid

SETTINGS = {
    "dataset": "digits",
    "architecture": "mlp",
    "constraints": "gradient_penalty",
    "experiment.batch_size": 64,
    "experiment.steps": 40,
    "experiment.seed": 0,
    "architectures.mlp.width": 256,
    "constraints.gradient_penalty.weight": 10.0,
}
WEIGHT = "constraints.gradient_penalty.weight"
MADE_BY = {"packages": {"ganlab": "0.1.0"}, "devices": ["/device:CPU:0"]}
BETTER = dict.fromkeys(("evaluation/exact_w1/distance", "evaluation/kid/distance"), "min")
BETTER |= dict.fromkeys(("evaluation/mode_coverage/modes", "evaluation/mode_coverage/high_quality"), "max")


def write_run(
    path: Path,
    *,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    metrics: Mapping[str, Sequence[float]] | None = None,
    evaluation: Mapping[str, Sequence[float]] | None = None,
    spread: float = 0.0,
    replicas: int = 2,
    status: str = "completed",
    every: int = 10,
    steps: int | None = None,
    wall_seconds: float = 4.0,
    started: str = "2026-08-01T12:00:00+00:00",
    **info: Any,
) -> Run:
    """Writes a run; what is not named here, and `info`, are fields of its run.json.

    Args:
        path: Its directory.
        seed: Overrides the setting.
        settings: In place of `SETTINGS`; a setting that is None is left out, as in real runs.
        metrics: Values by tag, one per logged row: rows are `every` steps apart, the first at step `every`.
        evaluation: Values of `evaluation/<tag>`, which have no replicas; fewer values than rows fill the last rows.
        spread: The spread of a metric's replicas, the largest less the smallest.
        steps: The steps that were requested; by default as many as there are.
    """
    metrics = {"critic/wasserstein": (4.0, 3.0, 2.0, 1.0)} if metrics is None else dict(metrics)
    evaluation = dict(evaluation or {})
    rows = max(map(len, [*metrics.values(), *evaluation.values()]), default=0)
    offsets = [spread * (index / (replicas - 1) - 0.5) if replicas > 1 else 0.0 for index in range(replicas)]
    flat = {**(SETTINGS if settings is None else settings), "experiment.seed": seed}
    run = create_run(
        path,
        config="experiment.steps = 40\n",
        operative="experiment.steps = 40\n",
        info={
            "status": status,
            "step": rows * every,
            "steps": rows * every if steps is None else steps,
            "seed": seed,
            "replicas": replicas,
            "settings": {name: value for name, value in flat.items() if value is not None},
            "metrics": {tag: values[-1] for tag, values in metrics.items() if len(values)},
            "evaluation": {name: values[-1] for name, values in evaluation.items() if len(values)},
            "diagnostics": {},
            "better": BETTER,
            "wall_seconds": wall_seconds,
            "provenance": {"started": started, "git": None, **MADE_BY},
            **info,
        },
    )
    writer = JsonLinesWriter(path / "metrics.jsonl")
    for row in range(rows):
        step, records = (row + 1) * every, []
        for tag, values in metrics.items():
            if row >= rows - len(values):
                value = float(values[row - rows + len(values)])
                records.append(Record(step, tag, value, tuple(value + offset for offset in offsets)))
        for name, values in evaluation.items():
            if row >= rows - len(values):
                records.append(Record(step, f"evaluation/{name}", float(values[row - rows + len(values)])))
        writer.scalars(records)
    writer.close()
    return run


def write_grid(root: Path, weights: Sequence[float], seeds: int = 2, **options: Any) -> Path:
    """Runs `w<weight>/s<seed>` of these weights of the gradient penalty; an option may be a function of both."""
    for weight in weights:
        for seed in range(seeds):
            given = {name: each(weight, seed) if callable(each) else each for name, each in options.items()}
            write_run(root / f"w{weight:g}" / f"s{seed}", seed=seed, settings={**SETTINGS, WEIGHT: weight}, **given)
    return root


def row(step: int, **metrics: Any) -> bytes:
    """A line of metrics.jsonl of two replicas."""
    table = {tag: {"reduced": value, "replicas": [value, value]} for tag, value in metrics.items()}
    return json.dumps({"step": step, "metrics": table}).encode() + b"\n"


def add_samples(run: Run, step: int = 40, png: bytes | None = None) -> bytes:
    """Adds a picture to a run, a black grid if none is given, and returns it."""
    folder = run.path / "samples"
    folder.mkdir(exist_ok=True)
    picture = image_grid(np.zeros((4, 8, 8, 1), np.float32)) if png is None else png
    (folder / f"step-{step:08d}.png").write_bytes(picture)
    return picture


def write_runs(root: Path, *, weights: Sequence[float] = (0.1, 1.0, 10.0), seeds: int = 3, **options: Any) -> Path:
    """Runs of several weights: the wider the weight, the larger the figures."""
    for number, weight in enumerate(weights):
        for seed in range(seeds):
            rng = np.random.default_rng(100 * number + seed)
            fall = np.geomspace(10.0 * (number + 1), 0.05 * (number + 1), 8) * rng.uniform(0.9, 1.1, 8)
            run = write_run(
                root / f"w{weight}" / f"s{seed}",
                seed=seed,
                settings={**SETTINGS, WEIGHT: weight},
                metrics={"critic/wasserstein": fall, "critic/loss": -fall},
                evaluation={"mode_coverage/modes": rng.integers(0, 9, 2), "exact_w1/distance": fall[[3, 7]] / 7},
                wall_seconds=200.0 + 3.7 * seed,
                **{"spread": 0.25, **options},
            )
            add_samples(run)
    return root
