"""The check that a run interrupted and resumed equals one that was not; two processes, one after the other."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf

from ganlab.composition import Experiment
from ganlab.runs.directory import METRICS, RunDirectory
from ganlab.training import start
from ganlab.training.checkpoints import Checkpoint, Checkpoints
from ganlab.training.graph.trainer import Trainer
from ganlab.verification.report import Row, Source
from ganlab.verification.trainings import composed, recipe_of

NAME = "resume"
_LOG_EVERY = 2  # so that an interruption now and then finds a row half gathered


def interrupt(source: Source, *, replicas: int, iterations: int, folder: str) -> dict[str, int]:
    """Trains once to the end and once up to a random iteration, where the process is told to stop.

    Args:
        source: The experiment.
        replicas: On how many replicas.
        iterations: Where the end is; at least 2.
        folder: Where the runs go.

    Returns:
        `at`: the iteration of the interruption, decided by the experiment's seed.
    """
    experiment = _experiment(source, replicas)
    at = random.Random(experiment.seed).randint(1, iterations - 1)
    _train(experiment, Path(folder) / "whole", until=iterations)
    _train(_experiment(source, replicas), Path(folder) / "resumed", until=at)
    return {"at": at}


def resume(source: Source, *, replicas: int, iterations: int, folder: str, at: int) -> Row:
    """Goes on with the interrupted run and compares it, bit for bit, with the whole one.

    Args:
        source: The experiment.
        replicas: On how many replicas.
        iterations: Where the end is.
        folder: Where the runs are.
        at: Where one was interrupted.

    Returns:
        The row. Its figure is the number of variables and lines that differ.
    """
    whole, resumed = Path(folder) / "whole", Path(folder) / "resumed"
    _train(_experiment(source, replicas), resumed, until=iterations, resume=True)
    before, after = (_left(path, iterations) for path in (whole, resumed))
    different = [name for name in before if before[name] != after.get(name)]
    different += [name for name in after if name not in before]
    data = {"interrupted_at": at, "iterations": iterations, "replicas": replicas, "different": different}
    where = f"interrupted at iteration {at} of {iterations} on {replicas} replica{'s' if replicas > 1 else ''}"
    if not different:
        lines = sum(name.startswith("metrics.jsonl") for name in before)
        detail = (
            f"{where[0].upper()}{where[1:]} and resumed in another process, a run is bit for bit the one that was not: "
            f"{len(before) - lines - 1} variables, {lines} logged rows, and the row half gathered."
        )
        return Row(NAME, "passed", 0.0, 0.0, detail, data)
    more = f" and {len(different) - 1} more" if len(different) > 1 else ""
    detail = (
        f"{where[0].upper()}{where[1:]} and resumed in another process, a run has another {different[0]}{more} than "
        "one that was not. Something that training depends on is in no checkpoint: a Python counter, a random "
        "generator with a state of its own, an iterator, or a variable that a plugin made for itself."
    )
    return Row(NAME, "failed", float(len(different)), 0.0, detail, {**data, "cause": "state outside the checkpoint"})


def _experiment(source: Source, replicas: int) -> Experiment:
    settings: dict[str, Any] = {"evaluate_every": 0, "checkpoint_every": 0, "log_every": _LOG_EVERY}
    return composed(recipe_of(source), replicas, evaluators=(), diagnostics=(), **settings)


def _train(experiment: Experiment, path: Path, *, until: int, resume: bool = False) -> None:
    """`ganlab.train`, told by a signal to stop after so many iterations, as a user or a scheduler would tell it."""

    class Interrupted(Trainer):
        def train(self, count: int) -> np.ndarray:
            values = super().train(min(count, until - self.state.step))
            if self.state.step == until:
                signal.raise_signal(signal.SIGTERM)
            return values

    with mock.patch.object(start, "Trainer", Interrupted):
        start.train(experiment, path, resume=resume, as_run=RunDirectory)


def _left(path: Path, step: int) -> dict[str, bytes]:
    """What a run has left at a step, as bytes by name."""
    (checkpoint,) = [saved for saved in Checkpoints(path / "checkpoints").all() if saved.step == step]
    return {**_variables(checkpoint), **_rows(path), "the row half gathered": checkpoint.pending().tobytes()}


def _variables(checkpoint: Checkpoint) -> dict[str, bytes]:
    reader = tf.train.load_checkpoint(checkpoint.prefix)
    suffix = "/.ATTRIBUTES/VARIABLE_VALUE"
    names = [name for name in reader.get_variable_to_shape_map() if name.endswith(suffix)]
    return {name.removesuffix(suffix): np.asarray(reader.get_tensor(name)).tobytes() for name in sorted(names)}


def _rows(path: Path) -> dict[str, bytes]:
    lines = (path / METRICS).read_bytes().splitlines()
    return {f"metrics.jsonl line {number}": line for number, line in enumerate(lines, start=1)}
