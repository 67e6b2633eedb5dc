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
from ganlab.errors import RunError
from ganlab.runs import Run, create_run, provenance
from ganlab.telemetry import Console, JsonLinesWriter, MultiWriter, Record
from ganlab.telemetry.tensorboard import TensorBoardWriter
from ganlab.training.checkpoints import Checkpoint, Checkpoints, restore
from ganlab.training.evaluation import Evaluation
from ganlab.training.guards import DivergedError, Warnings, check_finite, check_replicas, diverged
from ganlab.training.loop import Trainer
from ganlab.training.rows import Rows

# Long enough that what the host does between chunks is lost in it, short enough that Ctrl-C and the bar answer.
_CHUNK_SECONDS = 1.0
_RUN_JSON_SECONDS = 2.0


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
        TrainingFailedError: A metric is no longer finite; `info["status"]` is `diverged`.
    """
    chief = bool(experiment.strategy.extended.should_checkpoint)
    if resume and chief and Run(run_dir).info.get("status") == "completed":
        raise RunError(f"{run_dir} is completed: there is nothing to go on with.")
    screen = Console(quiet=not console)
    screen.message(_opening(experiment))
    trainer = Trainer(experiment)
    trainer.trace()
    checkpoint = Checkpoints(Path(run_dir) / "checkpoints").latest() if resume else None
    if not chief:
        # The other workers of several go through the same motions in a folder of their own, which goes with the run.
        scratch = tempfile.TemporaryDirectory(prefix="ganlab-worker-")
        run = Run(_create(experiment, trainer, Path(scratch.name) / "run").path, keeps=scratch)
    else:
        run = Run(run_dir) if resume else _create(experiment, trainer, Path(run_dir))
    session = _Session(experiment, trainer, run, screen, checkpoint, purge=resume and chief)
    return session.run_to_the_end()


class _Session:
    """One `train` call over a run that exists."""

    def __init__(
        self,
        experiment: Experiment,
        trainer: Trainer,
        run: Run,
        screen: Console,
        checkpoint: Checkpoint | None,
        *,
        purge: bool,
    ) -> None:
        self._experiment, self._trainer, self._run, self._screen = experiment, trainer, run, screen
        self._plugins = plugins.current()
        self._checkpoints = Checkpoints(run.path / "checkpoints")
        self._rows = Rows(trainer.metrics, experiment.log_every, experiment.replicas)
        self._evaluation = Evaluation(experiment, trainer.state, run)
        self._elapsed_before = float(run.info.get("wall_seconds") or 0.0)
        self._started = self._noted = time.monotonic()
        self._warnings = Warnings(trainer.state.stack)
        self._reached: dict[str, float] = dict(run.info.get("metrics") or {})
        if checkpoint is not None:
            restore(checkpoint, trainer.state.variables())
            trainer.state.step = checkpoint.step
            self._rows.pending = checkpoint.pending()
        step = trainer.state.step
        self._saved_at = step if checkpoint is not None else -1
        self._tensorboard = TensorBoardWriter(run.path, purge_step=step + 1 if purge else None)
        lines = JsonLinesWriter(run.path / "metrics.jsonl", truncate_after=step if purge else None)
        self._writers = MultiWriter([self._tensorboard, lines, screen])
        if not purge:
            self._tensorboard.layout([metric.tag for metric in trainer.metrics])
            self._tensorboard.hparams(config.flatten(experiment.recipe))
            self._tensorboard.text(0, "experiment", f"```\n{run.operative}```")

    def run_to_the_end(self) -> Run:
        """Trains until the end, a signal or a failure; run.json and the writers are closed in every case."""
        status, fields = "failed", {}
        self._run.update(status="running", signal=None)
        self._notify("ganlab_run_start", run=self._run)
        self._screen.start(self._experiment.steps, self._trainer.state.step)
        try:
            with _signals() as received:
                status = self._train(received)
            if status == "interrupted":
                fields["signal"] = received[0].name if received else None
        except DivergedError:
            status = "diverged"
            raise
        except KeyboardInterrupt:
            status, fields["signal"] = "interrupted", "SIGINT"
            raise
        finally:
            self._close(status, fields)
        return self._run

    def _train(self, received: Sequence[signal.Signals]) -> str:
        experiment, trainer = self._experiment, self._trainer
        length = 1
        while trainer.state.step < experiment.steps:
            step = trainer.state.step
            length = min(length, _to_next(step, experiment))
            begun = time.monotonic()
            values = trainer.train(length)
            self._take(step, values)
            # Every process must take the same turns, so the slowest one's time and anybody's signal count for all.
            seconds, stop = trainer.agree([time.monotonic() - begun, float(bool(received))])
            length = max(1, min(2 * length, int(length * _CHUNK_SECONDS / max(seconds, 1e-6))))
            self._do_what_is_due()  # also before stopping: a run that resumes here does not come by again
            if stop and trainer.state.step < experiment.steps:
                self._save()
                return "interrupted"
        return "completed"

    def _take(self, step: int, values: np.ndarray) -> None:
        good = check_finite(values)
        # The row of the first bad iteration is written too: it shows which metrics went with it.
        for records in self._rows.add(step, values if good is None else values[: good + 1]):
            self._write(records)
            for warning in self._warnings.row(records):
                self._warn(records[0].step, warning)
        if good is not None:
            latest = self._checkpoints.latest()
            kept = latest.step if latest else None
            raise diverged(self._trainer.metrics, step + good + 1, values[good], kept)
        check_replicas(list(self._trainer.state.variables()), self._trainer.checksums, self._trainer.state.step)

    def _warn(self, step: int, warning: str) -> None:
        self._screen.warning(warning)
        self._writers.text(step, "warnings", warning)
        self._run.update(warnings=[*self._run.info.get("warnings", []), warning])

    def _do_what_is_due(self) -> None:
        experiment, step = self._experiment, self._trainer.state.step
        last = step == experiment.steps
        if last:
            self._write(self._rows.rest(step))
        if last or _due(step, experiment.evaluate_every):
            evaluation = self._evaluation(step)
            self._write(evaluation.records)
            if evaluation.picture is not None:
                self._writers.image(step, "samples", evaluation.picture)
                folder = self._run.path / "samples"
                folder.mkdir(exist_ok=True)
                (folder / f"step-{step:08d}.png").write_bytes(evaluation.picture)
            if evaluation.figures:
                self._run.update(evaluation=evaluation.figures)
        if last or _due(step, experiment.checkpoint_every):
            self._save()
        if last or time.monotonic() - self._noted > _RUN_JSON_SECONDS:
            self._note()

    def _save(self) -> None:
        state = self._trainer.state
        if state.step != self._saved_at:
            self._writers.flush()  # a checkpoint must not be ahead of the metrics that lead to it
            self._checkpoints.save(state.step, state.variables(), self._rows.pending)
            self._saved_at = state.step
            self._note()

    def _note(self, **fields: Any) -> None:
        self._noted = time.monotonic()
        self._writers.flush()
        self._run.update(
            step=self._trainer.state.step,
            metrics=self._reached,
            wall_seconds=round(self._elapsed_before + self._noted - self._started, 3),
            **fields,
        )

    def _write(self, records: list[Record]) -> None:
        if not records:
            return
        self._writers.scalars(records)
        self._reached |= {record.tag: record.reduced for record in records if record.replicas}
        if self._plugins.listens("ganlab_metrics"):
            self._notify("ganlab_metrics", run=self._run, records=records)

    def _notify(self, hook: str, **arguments: Any) -> None:
        for failure in self._plugins.notify(hook, **arguments):
            self._screen.warning(failure)

    def _close(self, status: str, fields: dict[str, Any]) -> None:
        try:
            self._note(status=status, **fields)
            self._notify("ganlab_run_end", run=self._run, status=status)
            self._tensorboard.session_end(status)  # type: ignore[arg-type]
        finally:
            self._writers.close()


def _create(experiment: Experiment, trainer: Trainer, folder: Path) -> Run:
    devices = [device.name for device in tf.config.list_logical_devices()]
    recipe = experiment.recipe
    info = {
        "status": "running",
        "step": 0,
        "steps": experiment.steps,
        "seed": experiment.seed,
        "replicas": experiment.replicas,
        "strategy": type(experiment.strategy).__name__,
        "chief": bool(experiment.strategy.extended.should_checkpoint),
        "compiled": trainer.compiled,
        "metrics": {},
        "evaluation": {},
        "wall_seconds": 0.0,
        "provenance": provenance(sys.argv, devices, plugins.current().rows),
    }
    return create_run(folder, config=config.render(recipe), operative=config.render(recipe, defaults=True), info=info)


def _opening(experiment: Experiment) -> str:
    strategy, replicas = type(experiment.strategy).__name__, experiment.replicas
    plural = "replica" if replicas == 1 else "replicas"
    return f"{strategy}: {replicas} {plural}, {experiment.local_batch} examples each. Tracing ..."


def _due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0


def _to_next(step: int, experiment: Experiment) -> int:
    """Iterations until something is due."""
    everys = [every for every in (experiment.evaluate_every, experiment.checkpoint_every) if every]
    return min([experiment.steps - step, *(every - step % every for every in everys)])


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
