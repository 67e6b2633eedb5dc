"""`ganlab.Run`, a run with all that can be done with it, and `ganlab.train`, which makes one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from ganlab.runs.directory import RunDirectory

if TYPE_CHECKING:
    import keras

    from ganlab.composition import Experiment
    from ganlab.interfaces import Evaluator


class Run(RunDirectory):
    """A run on disk, finished or not: `ganlab.Run("runs/quickstart/20260801-120000-s0-1f2e")`."""

    def generator(self) -> keras.Model:
        """The trained generator, its average where the run keeps one."""
        from ganlab.training import load_generator

        return load_generator(self)

    def evaluate(
        self, evaluators: str | Evaluator | Sequence[str | Evaluator] = (), *, checkpoint: int | None = None
    ) -> dict[str, float]:
        """Measures the generator of a checkpoint, on one device and without its strategy; writes nothing.

        Args:
            evaluators: What to measure by: evaluators, or names such as `kid`, made as the run's file sets them; none
                for the experiment's own.
            checkpoint: A step that has a checkpoint; None for the newest.

        Returns:
            The figures by `<evaluator>/<figure>`, as run.json has them.

        Raises:
            RunError: There is no such checkpoint, or it does not fit the experiment as written down.
            ConfigError: The experiment has no evaluators and none are given; or what is given is no evaluator.
        """
        from ganlab.training import evaluate

        return evaluate(self, evaluators, checkpoint=checkpoint)


def train(
    experiment: Experiment,
    run_dir: str | os.PathLike[str],
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
        The run; its `info["status"]` is `completed`, or `interrupted` after SIGINT, SIGTERM or SIGHUP, with a
        checkpoint saved.
        On a worker that is not the chief it is a temporary one, gone with the object.

    Raises:
        GanlabError: The experiment cannot be trained, or the directory cannot be used; a new one is then not left.
        TrainingFailedError: Training began and could not go on; `info["status"]` is `diverged` where a metric is no
            longer finite and `failed` elsewhere.
    """
    from ganlab.training import start

    how = {"resume": resume, "allow_changes": allow_changes, "console": console}
    return cast(Run, start.train(experiment, run_dir, **how, as_run=Run))
