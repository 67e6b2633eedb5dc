"""The outer loop: trains an experiment into a run directory, from its first step or from its last checkpoint."""

from __future__ import annotations

import contextlib
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from ganlab import config, plugins
from ganlab.composition import Experiment
from ganlab.errors import RunError, TrainingFailedError
from ganlab.runs import Run, create_run, provenance
from ganlab.runs.lock import locked
from ganlab.telemetry import Console, Record
from ganlab.training.checkpoints import Checkpoint, Checkpoints, restore
from ganlab.training.evaluation import Evaluation
from ganlab.training.guards import DivergedError, Warnings, check_finite, check_replicas, diverged
from ganlab.training.journal import Journal
from ganlab.training.looking import Looks
from ganlab.training.loop import Trainer
from ganlab.training.rows import Rows

# Long enough that what the host does between chunks is lost in it, short enough that Ctrl-C and the bar answer.
_CHUNK_SECONDS = 1.0


def train(experiment: Experiment, run_dir: str | Path, *, resume: bool = False, console: bool = False) -> Run:
    """Trains an experiment.

    Args:
        experiment: What to train.
        run_dir: The run's directory: made anew, or with `resume` one that an earlier `train` left.
        resume: Whether to go on from the newest checkpoint of `run_dir`.
        console: Whether to show progress on the terminal.

    Returns:
        The run; its `info["status"]` is `completed`, or `interrupted` after SIGINT or SIGTERM, with a checkpoint saved.
        On a worker that is not the chief it is a temporary one, gone with the object.

    Raises:
        GanlabError: The experiment cannot be trained, or the directory cannot be used; a new one is then not left.
        TrainingFailedError: Training began and could not go on; `info["status"]` is `diverged` where a metric is no
            longer finite and `failed` elsewhere.
    """
    if resume and Run(run_dir).info.get("status") == "completed":
        raise RunError(f"{run_dir} is completed: there is nothing to go on with.")
    screen = Console(quiet=not console)
    screen.message(_opening(experiment))
    trainer = Trainer(experiment)
    trainer.trace()
    evaluation, looks = Evaluation(experiment, trainer.state), Looks(experiment, trainer.state)
    tags = [metric.tag for metric in trainer.metrics]
    chief = _is_chief(experiment)
    checkpoint = Checkpoints(Path(run_dir) / "checkpoints").latest() if resume else None
    if checkpoint is not None:
        checkpoint.check_fits(trainer.metrics, experiment.replicas)
        restore(checkpoint, trainer.state.variables())
        trainer.state.step = checkpoint.step
    elif chief:
        # What cannot be evaluated or looked at is known before anything is written.
        evaluation(0, None)
        tags += [record.tag for record in looks.check().records if record.replicas]
    if chief:
        run = Run(run_dir) if resume else _create(experiment, trainer, Path(run_dir))
    else:
        # The other workers of several go through the same motions in a folder of their own, which goes with the run.
        scratch = tempfile.TemporaryDirectory(prefix="ganlab-worker-")
        run = Run(_create(experiment, trainer, Path(scratch.name) / "run").path, keeps=scratch)
    with locked(run), _signals() as received:
        resumed_at = trainer.state.step if resume and chief else None
        if resumed_at is not None:
            run.update(resumed=[*run.info.get("resumed", []), _provenance()])
        try:
            journal = Journal(experiment, tags, run, screen, resumed_at=resumed_at)
        except BaseException:
            run.update(status="failed")
            raise
        _Session(experiment, trainer, evaluation, looks, run, journal, received).train(checkpoint)
    return run


class _Session:
    """One `train` call over a run that exists."""

    def __init__(
        self,
        experiment: Experiment,
        trainer: Trainer,
        evaluation: Evaluation,
        looks: Looks,
        run: Run,
        journal: Journal,
        received: Sequence[signal.Signals],
    ) -> None:
        self._experiment, self._trainer, self._evaluation, self._looks = experiment, trainer, evaluation, looks
        self._run, self._journal, self._received = run, journal, received
        self._chief = _is_chief(experiment)
        self._checkpoints = Checkpoints(run.path / "checkpoints")
        self._rows = Rows(trainer.metrics, experiment.log_every, experiment.replicas, experiment.critic_steps)
        self._warnings = Warnings(trainer.state.stack, trainer.metrics)
        self._saved_at = -1

    def train(self, checkpoint: Checkpoint | None) -> None:
        """Trains until the end, a signal or a failure, which run.json tells in every case.

        Args:
            checkpoint: What the trainer's state was restored from, or None.

        Raises:
            TrainingFailedError: Training could not go on.
        """
        try:
            self._train(checkpoint)
        except OSError as error:
            raise TrainingFailedError(f"{self._run.path} cannot be written: {error}.") from error

    def _train(self, checkpoint: Checkpoint | None) -> None:
        status, fields = "failed", {}
        try:
            self._journal.open(self._experiment.steps, self._trainer.state.step)
            if checkpoint is not None:
                self._saved_at, self._rows.pending = checkpoint.step, checkpoint.pending()
                if checkpoint.owes_evaluation:
                    self._do_what_is_due([])
            status = self._iterate()
            if status == "interrupted":
                fields["signal"] = self._received[0].name if self._received else None
        except DivergedError:
            status = "diverged"
            raise
        except KeyboardInterrupt:
            status, fields["signal"] = "interrupted", "SIGINT"
            raise
        finally:
            self._journal.close(self._trainer.state.step, status, **fields)

    def _iterate(self) -> str:
        experiment, trainer = self._experiment, self._trainer
        length = 1
        while trainer.state.step < experiment.steps:
            step = trainer.state.step
            length = min(length, _to_next(step, experiment))
            begun = time.monotonic()
            values = trainer.train(length)
            row = self._take(step, values)
            # Every process must take the same turns, so the slowest one's time and anybody's signal count for all.
            seconds, stop = trainer.agree([time.monotonic() - begun, float(bool(self._received))])
            length = max(1, min(2 * length, int(length * _CHUNK_SECONDS / max(seconds, 1e-6))))
            self._do_what_is_due(row)  # also before stopping: a run that resumes here does not come by again
            if stop and trainer.state.step < experiment.steps:
                self._save()
                return "interrupted"
        return "completed"

    def _take(self, step: int, values: np.ndarray) -> list[Record]:
        """Writes the rows that these iterations complete, all but the present step's, which is returned."""
        good = check_finite(values)
        row: list[Record] = []
        # The row of the first bad iteration is written too: it shows which metrics went with it.
        for records in self._rows.add(step, values if good is None else values[: good + 1]):
            self._journal.row(row)
            row = records
            for warning in self._warnings.row(records):
                self._journal.warn(records[0].step, warning)
        if good is not None:
            self._journal.row(row)
            latest = self._checkpoints.latest()
            raise diverged(self._trainer.metrics, step + good + 1, values[good], latest.step if latest else None)
        state = self._trainer.state
        if row and row[0].step != state.step:
            self._journal.row(row)
            row = []
        warning = check_replicas(list(state.variables()), self._trainer.sums, state.step)
        if warning:
            self._journal.warn(state.step, warning)
        return row

    def _do_what_is_due(self, row: list[Record]) -> None:
        """Writes the present step's row, with an evaluation and before a checkpoint where those are due."""
        experiment, step = self._experiment, self._trainer.state.step
        last = step == experiment.steps
        row = [*row, *(self._rows.rest(step) if last else [])]
        if self._chief:
            try:
                row += self._look(step, last)
            except BaseException:
                self._journal.row(row)
                self._save(owes_evaluation=True)
                raise
        self._journal.row(row)
        if last or _due(step, experiment.checkpoint_every):
            self._save()
        self._journal.note_now_and_then(step)

    def _look(self, step: int, last: bool) -> list[Record]:
        """Evaluates and diagnoses as far as that is due; gives the figures of both."""
        records: list[Record] = []
        evaluating = last or _due(step, self._experiment.evaluate_every)
        if evaluating:
            evaluated = self._evaluation(step, self._run)
            records += evaluated.records
            if evaluated.picture is not None:
                self._journal.picture(step, evaluated.picture)
            if evaluated.figures:
                self._run.update(evaluation=evaluated.figures)
        looked = self._looks(step, evaluating=evaluating, last=last)
        if looked is not None:
            self._journal.findings(step, looked, [*self._warnings.complaints, *self._looks.complaints])
            records += looked.records
        return records

    def _save(self, *, owes_evaluation: bool = False) -> None:
        state = self._trainer.state
        if state.step == self._saved_at or not self._chief:
            return
        self._journal.flush()  # a checkpoint must not be ahead of the metrics that lead to it
        self._checkpoints.save(
            state.step,
            state.variables(),
            self._rows.pending,
            metrics=self._trainer.metrics,
            replicas=self._experiment.replicas,
            owes_evaluation=owes_evaluation,
        )
        self._saved_at = state.step
        self._journal.note(state.step)


def _is_chief(experiment: Experiment) -> bool:
    return bool(experiment.strategy.extended.should_checkpoint)


def _create(experiment: Experiment, trainer: Trainer, folder: Path) -> Run:
    recipe = experiment.recipe
    info = {
        "status": "running",
        "step": 0,
        "steps": experiment.steps,
        "seed": experiment.seed,
        "replicas": experiment.replicas,
        "strategy": type(experiment.strategy).__name__,
        "chief": _is_chief(experiment),
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


def _due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0


def _to_next(step: int, experiment: Experiment) -> int:
    """Iterations until something is due."""
    everys = [experiment.evaluate_every, experiment.checkpoint_every, *(d.every for d in experiment.diagnostics)]
    return min([experiment.steps - step, *(every - step % every for every in everys if every)])


@contextlib.contextmanager
def _signals() -> Iterator[list[signal.Signals]]:
    """Collects SIGINT and SIGTERM instead of dying of the first; a second SIGINT interrupts at once."""
    received: list[signal.Signals] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def receive(number: int, frame: Any) -> None:
        if received and number == signal.SIGINT:
            raise KeyboardInterrupt
        received.append(signal.Signals(number))

    before = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
