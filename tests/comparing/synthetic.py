"""Run directories with known numbers, written as `ganlab run` writes them, without training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ganlab.run import Run
from ganlab.runs import create_run
from ganlab.telemetry import JsonLinesWriter, Record

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
    """Writes a run.

    Args:
        path: Its directory.
        seed: The experiment's seed; overrides the setting.
        settings: In place of `SETTINGS`; a setting that is None is left out, as in real runs.
        metrics: Values by tag, one per logged row: rows are `every` steps apart, the first at step `every`.
        evaluation: Values of `evaluation/<tag>`, which have no replicas; fewer values than rows fill the last rows.
        spread: The spread of a metric's replicas, the largest less the smallest.
        replicas: The number of replicas.
        status: The status in run.json.
        every: Steps between rows.
        steps: The steps that were requested; by default as many as there are.
        wall_seconds: The training time in run.json.
        started: The time in its provenance.
        **info: Further fields of run.json.
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
            "wall_seconds": wall_seconds,
            "provenance": {
                "started": started,
                "git": None,
                "packages": {"ganlab": "0.1.0"},
                "devices": ["/device:CPU:0"],
            },
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
