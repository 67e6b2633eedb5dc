"""Trains an experiment into a run directory: from its first step, or on from its last checkpoint."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path
from typing import Any

import tensorflow as tf

from ganlab import config, plugins
from ganlab.composition import Experiment
from ganlab.runs import Run, create_run, provenance
from ganlab.runs.lock import locked
from ganlab.runs.resuming import check_resumable, take_changes
from ganlab.telemetry import Console
from ganlab.training.checkpoints import Checkpoint
from ganlab.training.evaluation import Evaluation
from ganlab.training.journal import Journal
from ganlab.training.looking import Looks
from ganlab.training.loop import Trainer
from ganlab.training.resuming import go_back
from ganlab.training.session import Session, is_chief, written
from ganlab.training.stopping import signals


def train(
    experiment: Experiment,
    run_dir: str | Path,
    *,
    resume: bool = False,
    allow_changes: bool = False,
    console: bool = False,
) -> Run:
    """Trains an experiment.

    Args:
        experiment: What to train.
        run_dir: The run's directory: made anew, or with `resume` one that an earlier `train` left.
        resume: Whether to go on from the newest sound checkpoint of `run_dir`.
        allow_changes: Whether to go on also where the run began as another experiment.
        console: Whether to show progress on the terminal.

    Returns:
        The run; its `info["status"]` is `completed`, or `interrupted` after SIGINT or SIGTERM, with a checkpoint saved.
        On a worker that is not the chief it is a temporary one, gone with the object.

    Raises:
        GanlabError: The experiment cannot be trained, or the directory cannot be used; a new one is then not left.
        TrainingFailedError: Training began and could not go on; `info["status"]` is `diverged` where a metric is no
            longer finite and `failed` elsewhere.
    """
    run_dir, chief, screen = Path(run_dir), is_chief(experiment), Console(quiet=not console)
    with contextlib.ExitStack() as held:
        before, differing = (Run(run_dir) if resume else None), []
        if before is not None:
            differing = check_resumable(before, experiment.recipe, allow_changes=allow_changes)
            if chief:
                with written(before):
                    held.enter_context(locked(before, screen.warning))
        screen.message(_opening(experiment))
        trainer = Trainer(experiment)
        trainer.trace()
        evaluation, looks = Evaluation(experiment, trainer.state), Looks(experiment, trainer.state)
        tags, figures = [metric.tag for metric in trainer.metrics], []
        checkpoint = None
        if before is not None:
            checkpoint = go_back(before, experiment, trainer, screen.warning, allow_changes=allow_changes, mend=chief)
        if checkpoint is None and chief:
            # What cannot be evaluated or looked at is known before anything is written.
            figures = [record.tag for record in evaluation(0, None).records]
            tags += [record.tag for record in looks.check().records if record.replicas]
        if not chief:
            # The other workers go through the same motions in a folder of their own, which goes with the run.
            scratch = tempfile.TemporaryDirectory(prefix="ganlab-worker-")
            run = Run(_create(experiment, trainer, Path(scratch.name) / "run").path, keeps=scratch)
        elif before is not None:
            run = before
            with written(run):
                take_changes(run, experiment.recipe, differing)
                resumed = [
                    *run.info.get("resumed", []),
                    {**_provenance(), "step": trainer.state.step, "changes": differing},
                ]
                run.update(resumed=resumed, replicas=experiment.replicas, strategy=type(experiment.strategy).__name__)
        else:
            run = _create(experiment, trainer, run_dir)
            with written(run):
                held.enter_context(locked(run))
        received = held.enter_context(signals())
        keep = _kept(checkpoint) if before is not None and chief else None
        warned = _warned(checkpoint) if before is not None and chief else None
        try:
            with written(run):
                journal = Journal(experiment, tags, run, screen, keep=keep, figures=figures, warned=warned)
        except BaseException:
            with contextlib.suppress(OSError):
                run.update(status="failed")
            raise
        Session(experiment, trainer, evaluation, looks, run, journal, received).train(checkpoint)
    return run


def _kept(checkpoint: Checkpoint | None) -> int:
    """The last step whose rows stay when a run goes on."""
    return -1 if checkpoint is None else checkpoint.step - (checkpoint.owed is not None)


def _warned(checkpoint: Checkpoint | None) -> dict[str, int] | None:
    """What a run has warned of when it goes on; None where the checkpoint does not say."""
    return {} if checkpoint is None else checkpoint.warned


def _create(experiment: Experiment, trainer: Trainer, folder: Path) -> Run:
    recipe = experiment.recipe
    info = {
        "status": "running",
        "step": 0,
        "steps": experiment.steps,
        "seed": experiment.seed,
        "replicas": experiment.replicas,
        "strategy": type(experiment.strategy).__name__,
        "chief": is_chief(experiment),
        "compiled": trainer.compiled,
        "settings": config.flatten(recipe),
        "sample_shape": list(experiment.dataset.sample_shape),
        "metrics": {},
        "evaluation": {},
        "wall_seconds": 0.0,
        "provenance": _provenance(),
    }
    return create_run(folder, config=config.render(recipe), operative=config.render(recipe, defaults=True), info=info)


def _provenance() -> dict[str, Any]:
    devices = [device.name for device in tf.config.list_logical_devices()]
    return provenance(sys.argv, devices, plugins.current().rows)


def _opening(experiment: Experiment) -> str:
    strategy, replicas = type(experiment.strategy).__name__, experiment.replicas
    plural = "replica" if replicas == 1 else "replicas"
    return f"{strategy}: {replicas} {plural}, {experiment.local_batch} examples each. Tracing ..."
