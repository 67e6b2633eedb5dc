"""Trains an experiment into a run directory: from its first step, or resumed from its last checkpoint."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from ganlab import config
from ganlab.composition import Experiment
from ganlab.errors import ConfigError
from ganlab.plugins.recipes import Recipe, check_unchanged
from ganlab.runs import RunDirectory
from ganlab.support.paths import local
from ganlab.telemetry import Console
from ganlab.training import time_limits
from ganlab.training.actions.profile import span
from ganlab.training.graph.trainer import Trainer
from ganlab.training.interruption import signals
from ganlab.training.prepared import Preparation
from ganlab.training.run_log import RunLog, is_chief, written
from ganlab.training.session import Session


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

    `as_run` makes a run from a directory: the run that is returned, and that plugins are given. `trainer` builds the
    graph that trains. After step `stop_at` training stops with a checkpoint, as it would for a signal.
    """
    time_limits.check()
    for _, component in experiment.components():
        check_unchanged(component)
    if experiment.evaluate_beside:
        _check_beside(experiment.recipe)
    traced = span(profile) if profile else None
    folder, screen = local(run_dir, "run_dir"), Console(quiet=not console)
    with contextlib.ExitStack() as held:
        before = as_run(folder, experiment=experiment) if resume else None
        preparation = Preparation(experiment, screen, as_run, trainer)
        if not is_chief(experiment.strategy):
            prepared = preparation.worker(before, allow_changes=allow_changes)
        elif before is not None:
            prepared = preparation.resumed(before, held, allow_changes=allow_changes)
        else:
            prepared = preparation.new(folder, held)
        received, run = held.enter_context(signals()), prepared.run
        try:
            with written(run):
                settings = config.flatten(experiment.recipe)
                run_log = RunLog(
                    run, settings, screen, prepared.drawn, prepared.past, lambda: received.asked() is not None
                )
        except BaseException:
            with contextlib.suppress(OSError):
                run.update(status="failed")
            raise
        Session(prepared, run_log, received, traced, stop_at).train()
    return run


def _check_beside(recipe: Recipe) -> None:
    """Refuses to evaluate in another process what no other process can make."""
    for name, value in recipe.arguments.items():
        if config.objects(value):
            raise ConfigError(
                f"experiment.evaluate_beside = True, and another process cannot make experiment.{name} = "
                f"{value!r:.200}, which was made in Python. Make it a component of a plugin, for example in a "
                "ganlab_plugins.py, or leave evaluate_beside out."
            )
