"""The check that a resumed run equals an uninterrupted one; two processes, one after the other."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from ganlab import Experiment
from ganlab.commands import listed
from ganlab.engine import Checkpoint, Checkpoints, train
from ganlab.errors import IncompatibleError
from ganlab_verify.report import Row, Source
from ganlab_verify.trainings import composed, recipe_of

NAME = "resume"
_LOG_EVERY = 2  # so that an interruption sometimes falls within a row


def interrupt(source: Source, *, replicas: int, iterations: int, folder: str) -> dict[str, int]:
    """Trains once to the end and once up to a random iteration, where it stops as by a signal.

    Args:
        source: The experiment.
        replicas: The number of replicas.
        iterations: The last iteration; at least 2.
        folder: The folder for the runs.

    Returns:
        `at`: the iteration of the interruption, decided by the experiment's seed.
    """
    experiment = _experiment(source, replicas)
    if (iterations := min(iterations, experiment.steps)) < 2:
        raise IncompatibleError("The check needs a step before the interruption and one after: raise experiment.steps.")
    at = random.Random(experiment.seed).randint(1, iterations - 1)
    train(experiment, Path(folder) / "whole", stop_at=iterations)
    train(_experiment(source, replicas), Path(folder) / "resumed", stop_at=at)
    return {"at": at}


def resume(source: Source, *, replicas: int, iterations: int, folder: str, at: int) -> Row:
    """Resumes the interrupted run and compares it, bit for bit, with the uninterrupted one.

    Args:
        source: The experiment.
        replicas: The number of replicas.
        iterations: The last iteration.
        folder: The folder of the runs.
        at: The iteration of the interruption.

    Returns:
        The row. Its figure is the number of variables and lines that differ.
    """
    whole, resumed = Path(folder) / "whole", Path(folder) / "resumed"
    experiment = _experiment(source, replicas)
    replicas, iterations = experiment.replicas, min(iterations, experiment.steps)
    train(experiment, resumed, resume=True, stop_at=iterations)
    before, after = (_results(path, iterations) for path in (whole, resumed))
    different = [name for name in before if before[name] != after.get(name)]
    different += [name for name in after if name not in before]
    data = {"interrupted_at": at, "iterations": iterations, "replicas": replicas, "different": different}
    where = f"interrupted at iteration {at} of {iterations} on {replicas} replica{'s' if replicas > 1 else ''}"
    if not different:
        rows = sum(name.startswith("metrics.jsonl") for name in before)
        detail = (
            f"{where[0].upper()}{where[1:]} and resumed in another process, a run equals an uninterrupted one bit for "
            f"bit: {len(before) - rows - 1} variables, {rows} logged rows, and the half-gathered row."
        )
        return Row(NAME, "passed", 0.0, 0.0, detail, data)
    detail = (
        f"{where[0].upper()}{where[1:]} and resumed in another process, a run differs from an uninterrupted one in "
        f"{listed(different, 1)}. Something that training depends on is not in the checkpoint: a Python counter, a "
        "random generator with its own state, an iterator, or a variable that a plugin created itself."
    )
    return Row(NAME, "failed", float(len(different)), 0.0, detail, {**data, "cause": "state outside the checkpoint"})


def _experiment(source: Source, replicas: int) -> Experiment:
    settings: dict[str, Any] = {"evaluate_every": 0, "checkpoint_every": 0, "log_every": _LOG_EVERY}
    recipe = recipe_of(source)
    if recipe.arguments.get("jit") == "step":  # it compiles the iteration of one replica
        replicas = 0
    return composed(recipe, replicas, evaluators=(), diagnostics=(), **settings)


def _results(path: Path, step: int) -> dict[str, bytes]:
    """The results of a run at a step, as bytes by name."""
    (checkpoint,) = [saved for saved in Checkpoints(path / "checkpoints").all() if saved.step == step]
    return {**_variables(checkpoint), **_rows(path), "the half-gathered row": checkpoint.pending().tobytes()}


def _variables(checkpoint: Checkpoint) -> dict[str, bytes]:
    reader = tf.train.load_checkpoint(checkpoint.prefix)
    suffix = "/.ATTRIBUTES/VARIABLE_VALUE"
    names = [name for name in reader.get_variable_to_shape_map() if name.endswith(suffix)]
    return {name.removesuffix(suffix): np.asarray(reader.get_tensor(name)).tobytes() for name in sorted(names)}


def _rows(path: Path) -> dict[str, bytes]:
    lines = (path / "metrics.jsonl").read_bytes().splitlines()
    return {f"metrics.jsonl line {number}": line for number, line in enumerate(lines, start=1)}
