"""Trains an experiment into a run directory: from its first step, or resumed from its last checkpoint."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from ganlab import config
from ganlab.composition import PARTS, Experiment
from ganlab.errors import ConfigError
from ganlab.plugins import manager as plugins
from ganlab.plugins.recipes import check_unchanged
from ganlab.runs import RunDirectory, create_run, provenance
from ganlab.runs.changes import EXTENDS
from ganlab.runs.lock import locked
from ganlab.runs.resuming import begin_again, check_resumable, take_changes
from ganlab.support.paths import local
from ganlab.telemetry import Console
from ganlab.training import time_limits
from ganlab.training.actions.best import check_metric
from ganlab.training.actions.profile import span
from ganlab.training.checkpoints import Checkpoint
from ganlab.training.diagnostics.schedule import DiagnosticSchedule
from ganlab.training.evaluation import Evaluation, limits_of
from ganlab.training.graph.learning_rate import changed_by_steps
from ganlab.training.graph.sampling import label_frequencies
from ganlab.training.graph.tf_errors import translated_errors
from ganlab.training.graph.trainer import Trainer
from ganlab.training.interruption import signals
from ganlab.training.recorded_origins import Origins
from ganlab.training.restore import go_back
from ganlab.training.run_log import RunLog
from ganlab.training.same_settings import check_same_settings
from ganlab.training.session import Session, is_chief, written
from ganlab.training.starting_weights import start_from


def train(
    experiment: Experiment,
    run_dir: str | os.PathLike[str],
    *,
    resume: bool = False,
    allow_changes: bool = False,
    console: bool = False,
    profile: str = "",
    as_run: Callable[..., RunDirectory] = RunDirectory,
    trainer: Callable[[Experiment], Trainer] = Trainer,
    stop_at: int | None = None,
) -> RunDirectory:
    """Trains an experiment; `ganlab.train` has the documentation.

    Args:
        experiment: The experiment to train.
        run_dir: The run's directory.
        resume: Whether to resume from the newest sound checkpoint of `run_dir`.
        allow_changes: Whether to resume with changed settings, too.
        console: Whether to show progress on the terminal.
        profile: The iterations to trace, `20..25`; empty for none.
        as_run: Makes a run from a directory: the run that is returned, and that plugins are given.
        trainer: Builds the graph that trains.
        stop_at: The step after which to stop with a checkpoint, as a signal would; None for the end.
    """
    time_limits.check()
    for part in PARTS:
        check_unchanged(getattr(experiment, part))
    _check_beside(experiment)
    traced = span(profile) if profile else None
    run_dir, chief, screen = local(run_dir, "run_dir"), is_chief(experiment), Console(quiet=not console)
    with contextlib.ExitStack() as held:
        before = as_run(run_dir, experiment=experiment) if resume else None
        differing: list[str] = []
        extends = None
        origins = Origins(experiment)
        if before is not None:
            differing, extends = check_resumable(
                before,
                experiment.recipe,
                allow_changes=allow_changes,
                data=origins.found["data"],
                changed_by_steps=functools.partial(changed_by_steps, experiment),
            )
            if chief:
                with written(before):
                    held.enter_context(locked(before, screen.warning))
        screen.message(_opening(experiment))
        check_same_settings(experiment, resume=resume)
        with translated_errors(experiment, 0):
            engine = trainer(experiment)
        engine.trace()
        origins.of_trainer(engine)
        evaluation, schedule = Evaluation(experiment, engine.state), DiagnosticSchedule(experiment, engine.state)
        checkpoint, drawn, started = None, None, None
        if before is not None:
            checkpoint = go_back(before, experiment, engine, screen.warning, allow_changes=allow_changes, mend=chief)
        if checkpoint is None:
            recorded = before.info.get("started_from") if before else None
            started = start_from(experiment, engine.state, screen.message, screen.warning, recorded)
        if checkpoint is None and chief:
            # Evaluates and diagnoses once before anything is written, so that what cannot work fails now.
            drawn = _drawn(engine, evaluation, schedule)
            check_metric(experiment, drawn[1])
        if not chief:
            # The other workers do the same in a folder of their own, which is removed with the run.
            scratch = tempfile.TemporaryDirectory(prefix="ganlab-worker-")
            made = create(experiment, engine, origins, Path(scratch.name) / "run")
            run = as_run(made.path, experiment=experiment, keeps=scratch)
        elif before is not None:
            run = before
            with written(run):
                take_changes(run, experiment.recipe, differing)
                if checkpoint is None:
                    begin_again(run)
                info = run.info
                again = {**_provenance(), **origins.news(info, screen.warning), "step": engine.state.step}
                again |= {"changes": differing, **({} if extends is None else {EXTENDS: extends})}
                run.update(
                    resumed=[*info.get("resumed", []), again],
                    **({"started_from": started} if started else {}),
                    checkpointed=checkpoint is not None,
                    limits=_limits(experiment),
                    replicas=experiment.replicas,
                    strategy=type(experiment.strategy).__name__,
                )
        else:
            run = as_run(create(experiment, engine, origins, run_dir, started).path, experiment=experiment)
            with written(run):
                held.enter_context(locked(run))
        received = held.enter_context(signals())
        keep = _last_step_to_keep(checkpoint) if before is not None and chief else None
        warned = _earlier_warnings(checkpoint) if before is not None and chief else None
        rows = checkpoint.rows if checkpoint is not None and chief else None
        try:
            with written(run):
                run_log = RunLog(
                    experiment,
                    lambda: drawn or _drawn(engine, evaluation, schedule),
                    run,
                    screen,
                    keep=keep,
                    warned=warned,
                    rows=rows,
                    stopping=lambda: received.asked() is not None,
                )
        except BaseException:
            with contextlib.suppress(OSError):
                run.update(status="failed")
            raise
        Session(experiment, engine, evaluation, schedule, run, run_log, received, traced, stop_at).train(checkpoint)
    return run


def _check_beside(experiment: Experiment) -> None:
    """Refuses to evaluate in another process what no other process can make."""
    marked = {name: value for name, value in experiment.recipe.arguments.items() if config.objects(value)}
    if experiment.evaluate_beside and marked:
        name = next(iter(marked))
        raise ConfigError(
            f"experiment.evaluate_beside = True, and another process cannot make experiment.{name} = "
            f"{marked[name]!r:.200}, which was made in Python. Make it a component of a plugin, for example in a "
            "ganlab_plugins.py, or leave evaluate_beside out."
        )


def _drawn(trainer: Trainer, evaluation: Evaluation, schedule: DiagnosticSchedule) -> tuple[list[str], list[str]]:
    """The tags of the metrics that every replica logs, and of the figures of the run as a whole."""
    figures = [record.tag for record in evaluation(0, None).records]
    found = [record.tag for record in schedule.check().records if record.replicas]
    return [*(metric.tag for metric in trainer.metrics), *found], figures


def _last_step_to_keep(checkpoint: Checkpoint | None) -> int:
    """The last step whose rows stay when a run is resumed."""
    return -1 if checkpoint is None else checkpoint.step - (checkpoint.owed is not None)


def _earlier_warnings(checkpoint: Checkpoint | None) -> dict[str, int] | None:
    """The warnings of a run before it is resumed; None if the checkpoint does not record them."""
    return {} if checkpoint is None else checkpoint.warned


def create(
    experiment: Experiment,
    trainer: Trainer,
    origins: Origins,
    folder: Path,
    started: Mapping[str, Any] | None = None,
    fill: Callable[[Path], None] = lambda folder: None,
    **more: Any,
) -> RunDirectory:
    """Creates the directory of a run.

    Args:
        experiment: The experiment to train.
        trainer: Its trainer, after tracing.
        origins: Where its code and its data come from.
        folder: The directory, which does not exist.
        started: What is recorded of the run whose weights it begins with.
        fill: Writes what the directory has besides from the first moment on.
        **more: Further fields of run.json.

    Raises:
        RunError: It exists, or cannot be created.
    """
    recipe = experiment.recipe
    info = {
        "status": "running",
        "step": 0,
        "steps": experiment.steps,
        "seed": experiment.seed,
        "replicas": experiment.replicas,
        "strategy": type(experiment.strategy).__name__,
        "chief": is_chief(experiment),
        "checkpointed": False,
        "compiled": trainer.compiled,
        "settings": config.flatten(recipe),
        "sample_shape": list(experiment.dataset.sample_shape),
        "label_frequencies": _frequencies(experiment),
        **({"started_from": started} if started else {}),
        "limits": _limits(experiment),
        "metrics": {},
        "evaluation": {},
        "wall_seconds": 0.0,
        "provenance": {**_provenance(), **origins.found},
        **more,
    }
    operative = config.render(recipe, defaults=True)
    return create_run(folder, config=config.render(recipe), operative=operative, info=info, fill=fill)


def _limits(experiment: Experiment) -> dict[str, list[float | None]]:
    return limits_of(experiment.component_names("evaluators"), experiment.evaluators, experiment.dataset)


def _frequencies(experiment: Experiment) -> list[float] | None:
    conditional = experiment.architecture.conditional
    return label_frequencies(experiment.dataset, experiment.seed) if conditional else None


def _provenance() -> dict[str, Any]:
    devices = [device.name for device in tf.config.list_logical_devices()]
    return provenance(sys.argv, devices, plugins.current().rows)


def _opening(experiment: Experiment) -> str:
    strategy, replicas = type(experiment.strategy).__name__, experiment.replicas
    plural = "replica" if replicas == 1 else "replicas"
    return f"{strategy}: {replicas} {plural}, {experiment.local_batch} examples each. Tracing ..."
