"""Trains a twin of a run from one of its steps, with the same batches and noise and other settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import keras
import numpy as np
import tensorflow as tf

from ganlab import Run
from ganlab.commands import Recipe, listed
from ganlab.engine import Checkpoint, Checkpoints, Rewound, Trainer, TrainingState, compose, make, restore, train
from ganlab.errors import ConfigError, RunError
from ganlab.files import line, local
from ganlab.runs import METRICS, RunDirectory
from ganlab.telemetry import JsonLinesWriter, read_metrics

_LISTED = 4


def fork(
    run: RunDirectory,
    run_dir: str | os.PathLike[str],
    *,
    at: int,
    params: Sequence[str] = (),
    console: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Run:
    """`ganlab.Run.fork`, which has the documentation; `say` takes sentences about what begins anew or may differ.

    The twin's state at that step is the run's, bit for bit; examples and noise depend on the seed and the step alone,
    so they are the same as long as seed, batch size and replicas are. What the twin has and the run has not, for
    example the state of another constraint, begins anew. Its metrics.jsonl begins with the run's rows.
    """
    target = local(run_dir, "run_dir")
    if at < 1:
        raise RunError(f"at = {at}: a fork begins after step 1 or later; before that it is a new run.")
    before, recipe = run.recipe(), run.recipe(params)
    old, new = (each.arguments.get("start_from", "") for each in (before, recipe))
    if old != new:
        raise ConfigError(
            f"experiment.start_from = {new!r}, and the run has {old!r}: a fork takes its weights from the run. Leave "
            "it out, or start a new run with 'ganlab run'."
        )
    if _virtual(before) > _virtual(recipe):  # TensorFlow splits a CPU only once: into the larger number
        make(before.arguments["strategy"])
    experiment = compose(recipe)
    if experiment.steps <= at:
        raise ConfigError(
            f"experiment.steps = {experiment.steps}: a fork at step {at} has nothing to train. Raise the steps: "
            "--param experiment.steps=N."
        )
    if os.path.lexists(target):
        raise RunError(f"{line(target)} already exists; a fork needs a directory of its own. Choose another name.")
    rewound = Rewound(run, at, at, say)
    for _ in rewound.rows(at):
        pass
    if rewound.step != at:
        raise RunError(f"{line(run.path)} diverged at step {rewound.step}, before step {at}.")
    trainer = Trainer(experiment)
    trainer.trace()

    def fill(folder: Path) -> None:
        checkpoints = Checkpoints(folder / "checkpoints")
        saved = _save(checkpoints, rewound.trainer, at, rewound.pending)
        _take(trainer.state, rewound.trainer.state, saved, say)
        trainer.state.step = at
        none = np.zeros((0, experiment.replicas, 0), np.float32)
        _save(checkpoints, trainer, at, rewound.pending if _same_rows(rewound.trainer, trainer) else none)
        _copy_rows(run.path / METRICS, folder / METRICS, at)

    rewound.create_fork(trainer, target, fill)
    return cast(Run, train(experiment, target, resume=True, console=console, as_run=Run))


def _virtual(recipe: Recipe) -> int:
    """How many devices the strategy splits the CPU into; 0 for none."""
    return getattr(recipe.arguments.get("strategy"), "arguments", {}).get("virtual_replicas") or 0


def _save(checkpoints: Checkpoints, trainer: Trainer, step: int, pending: np.ndarray) -> Checkpoint:
    tags, replicas = trainer.metrics, trainer.experiment.replicas
    return checkpoints.save(step, trainer.state.variables(), pending, metrics=tags, replicas=replicas)


def _take(state: TrainingState, before: TrainingState, saved: Checkpoint, say: Callable[[str], None]) -> None:
    """Gives a state every variable that the earlier one has under its name, with its type and shape."""
    old, new = before.variables(), state.variables()
    slots = dict(_slots(before, state))
    fits: dict[str, tf.Variable] = {}
    for name, variable in new.items():
        source = slots.get(name, name)
        other = old.get(source) if source else None
        if other is not None and (other.dtype, other.shape) == (variable.dtype, variable.shape):
            fits[source] = variable
    restored = {id(variable) for variable in fits.values()}
    anew = [name for name, variable in new.items() if id(variable) not in restored]
    with state.own_rates():
        restore(saved, fits, partial=True)
        if anew:  # averages and constraints begin at the weights of now
            state.take_weights({})
            restore(saved, fits, partial=True)
    if anew:
        names = listed(anew, _LISTED)
        say(f"{len(anew)} of {len(new)} variables begin anew, because the run has none like them: {names}.")


def _slots(before: TrainingState, state: TrainingState) -> Iterator[tuple[str, str]]:
    """For each of an optimizer's variables, the name of the same one in the earlier state; empty if it has none.

    They are numbered, and a learning rate that follows a schedule is not among them, so numbers may be shifted.
    """
    for role in (role for role in state.players if role in before.players):
        now, then = (_slot_names(each.players[role].optimizer, role) for each in (state, before))
        for kind, name in now.items():
            yield name, then.get(kind, "") if len(now) - len(then) in (-1, 0, 1) else ""


def _slot_names(optimizer: keras.optimizers.Optimizer, role: str) -> dict[str, str]:
    rate = getattr(optimizer, "_learning_rate", None)
    kinds: dict[str, str] = {}
    for i, variable in enumerate(optimizer.variables):
        kind = "rate" if variable is rate else f"{len(kinds) - ('rate' in kinds)}"
        kinds[kind] = f"{role}/optimizer/{i:04d}"
    return kinds


def _same_rows(before: Trainer, now: Trainer) -> bool:
    same = [metric.tag for metric in before.metrics] == [metric.tag for metric in now.metrics]
    return same and before.experiment.replicas == now.experiment.replicas


def _copy_rows(source: Path, target: Path, until: int) -> None:
    """Copies the rows up to a step."""
    writer = JsonLinesWriter(target)
    try:
        row: list[Any] = []
        for record in read_metrics(source):
            if record.step > until:
                break
            if row and record.step != row[0].step:
                writer.scalars(row)
                row = []
            row.append(record)
        writer.scalars(row)
    finally:
        writer.close()
