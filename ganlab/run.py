"""`ganlab.Run`, a run with all its operations, and `ganlab.train`, which makes one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from ganlab.runs.directory import RunDirectory

if TYPE_CHECKING:
    import keras

    from ganlab.composition import Experiment
    from ganlab.interfaces import Evaluator
    from ganlab.training.certifying import Certified
    from ganlab.training.distance import CertifiedDistance
    from ganlab.training.loading import Step


class Run(RunDirectory):
    """A run on disk, finished or not: `ganlab.Run("runs/quickstart/20260801-120000-s0-1f2e")`."""

    def generator(self) -> keras.Model:
        """The trained generator, or its average if the run keeps one."""
        from ganlab.training import load_generator

        return load_generator(self)

    def evaluate(
        self, evaluators: str | Evaluator | Sequence[str | Evaluator] = (), *, checkpoint: Step = None
    ) -> dict[str, float]:
        """Measures the generator of a checkpoint, on one device and without its strategy; writes nothing.

        Args:
            evaluators: Evaluators, or names such as `kid`, configured by the run's file; empty for the experiment's
                own evaluators.
            checkpoint: The step of a checkpoint, "best" by `experiment.keep_best`, or None for the newest.

        Returns:
            The figures by `<evaluator>/<figure>`, as in run.json.

        Raises:
            RunError: The checkpoint is missing, or does not fit the recorded experiment.
            ConfigError: The experiment has no evaluators and none are given, or an argument is not an evaluator.
        """
        from ganlab.training import evaluate

        return evaluate(self, evaluators, checkpoint=checkpoint)

    def certify(
        self, *, checkpoint: Step = None, seconds: float = 60.0, rungs: Sequence[str] | None = None
    ) -> Certified:
        """Bounds the Lipschitz constant of a checkpoint's critic, on one device and without its strategy.

        Args:
            checkpoint: The step of a checkpoint, "best" by `experiment.keep_best`, or None for the newest.
            seconds: How long each slow certificate, and the attack, may take; what they have by then is sound.
            rungs: Which certificates to compute, of those that `ganlab.lipschitz.ladder` lists; None for all.

        Returns:
            `lower`, `upper`, and all certificates as `rungs`.

        Raises:
            RunError: The checkpoint is missing, or does not fit the recorded experiment.
            ConfigError: A certificate is unknown.
        """
        from ganlab.training.certifying import RUNGS, certify

        return certify(self, checkpoint=checkpoint, seconds=seconds, rungs=RUNGS if rungs is None else rungs)

    def certify_distance(
        self,
        *,
        checkpoint: Step = None,
        samples: int = 16_384,
        confidence: float = 0.95,
        box: tuple[float, float] | None = None,
        seconds: float = 60.0,
    ) -> CertifiedDistance:
        """An interval that holds the Wasserstein-1 distance between the data and a checkpoint's generator.

        Args:
            checkpoint: The step of a checkpoint, "best" by `experiment.keep_best`, or None for the newest.
            samples: How many held-out samples of each kind.
            confidence: The probability that the interval holds the distance.
            box: The least and the largest value that any number of an example or a sample takes; None for [-1, 1] for
                images, and for vectors a box that is wider than that of samples.
            seconds: How long each slow certificate of the critic may take.

        Returns:
            The interval, what its ends rest on, and what it assumes.

        Raises:
            RunError: The checkpoint is missing, or does not fit the recorded experiment; or a sample lies outside the
                box.
            ConfigError: A value is out of its range.
        """
        from ganlab.training.distance import certify_distance

        return certify_distance(
            self, checkpoint=checkpoint, samples=samples, confidence=confidence, box=box, seconds=seconds
        )


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
        experiment: The experiment to train.
        run_dir: The run's directory: a new one, or with `resume` that of an earlier `train`.
        resume: Whether to resume from the newest sound checkpoint of `run_dir`.
        allow_changes: Whether to resume even if the experiment, its code or its data have changed.
        console: Whether to show progress on the terminal.

    Returns:
        The run; its `info["status"]` is `completed`, or `interrupted` after SIGINT, SIGTERM or SIGHUP, with a
        checkpoint saved.
        On a worker that is not the chief, the run is temporary and is deleted with the object.

    Raises:
        GanlabError: The experiment cannot be trained, or the directory cannot be used; no new directory is left behind.
        TrainingFailedError: Training began and could not continue; `info["status"]` is `diverged` if a metric is not
            finite, and `failed` otherwise.
    """
    from ganlab.training import start

    how = {"resume": resume, "allow_changes": allow_changes, "console": console}
    return cast(Run, start.train(experiment, run_dir, **how, as_run=Run))
