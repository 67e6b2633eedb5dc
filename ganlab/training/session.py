"""The outer loop of a run: chunks of iterations, and the work that is due between them."""

from __future__ import annotations

import contextlib
import functools
import shlex
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from ganlab.composition import Experiment
from ganlab.errors import GanlabError, RunError, TrainingFailedError
from ganlab.runs import RunDirectory
from ganlab.runs.lock import LOCK
from ganlab.telemetry import Record
from ganlab.training.checkpoints import Checkpoint, Checkpoints
from ganlab.training.diagnostics.schedule import Looks
from ganlab.training.evaluation import Evaluation
from ganlab.training.graph.guards import DivergedError, Warnings, check_finite, check_replicas, diverged
from ganlab.training.graph.tf_errors import WorkerLostError, of_several
from ganlab.training.graph.trainer import Trainer
from ganlab.training.interruption import Received, StoppedError
from ganlab.training.pending_rows import Rows
from ganlab.training.run_log import Journal
from ganlab.training.watchdog import OverdueError, Watch

# Long enough to hide the host's work between chunks, short enough for Ctrl-C and the progress bar to respond.
_CHUNK_SECONDS = 1.0


class Session:
    """One `train` call on a run whose directory exists."""

    def __init__(
        self,
        experiment: Experiment,
        trainer: Trainer,
        evaluation: Evaluation,
        looks: Looks,
        run: RunDirectory,
        journal: Journal,
        received: Received,
    ) -> None:
        self._experiment, self._trainer, self._evaluation, self._looks = experiment, trainer, evaluation, looks
        self._run, self._journal, self._received = run, journal, received
        self._chief = is_chief(experiment)
        self._checkpoints = Checkpoints(run.path / "checkpoints")
        self._rows = Rows(trainer.metrics, experiment.log_every, experiment.replicas, experiment.critic_steps)
        self._warnings = Warnings(trainer.state.stack, trainer.metrics)
        self._signal: str | None = None
        self._saved_at = -1

    def train(self, checkpoint: Checkpoint | None) -> None:
        """Trains until the end, a signal or a failure, and records in run.json which of these it was.

        Args:
            checkpoint: The checkpoint that the trainer's state was restored from, or None.

        Raises:
            TrainingFailedError: Training could not continue.
        """
        try:
            with written(self._run):
                self._train(checkpoint)
        except (GanlabError, TrainingFailedError) as error:
            with contextlib.suppress(OSError):  # the error may be that the disk is full
                self._run.update(error=str(error))
            raise

    def _train(self, checkpoint: Checkpoint | None) -> None:
        status = "failed"
        fields: dict[str, Any] = {}
        try:
            self._journal.open(self._experiment.steps, self._trainer.state.step)
            if checkpoint is not None:
                self._resume(checkpoint)
            status = self._iterate()
            if status == "interrupted":
                fields["signal"] = self._signal
        except DivergedError as error:
            status = "diverged"
            fields["health"] = [f"training: {error}"]
            raise
        except WorkerLostError:
            status = "interrupted"
            raise
        except StoppedError:
            status, fields["signal"] = "interrupted", self._received.first.name if self._received.first else None
        except KeyboardInterrupt:
            if not self._received.interrupted:
                raise self._failed("a plugin raised KeyboardInterrupt") from None
            status, fields["signal"] = "interrupted", "SIGINT"
            raise
        except OverdueError as error:
            raise self._failed(
                f"{error}. Raise the limit, or leave the plugin out. The checkpoint of this step is kept: "
                f"ganlab run --resume {shlex.quote(str(self._run.path))}"
            ) from None
        except SystemExit as error:
            raise self._failed(f"a plugin called sys.exit({error.code!r})") from error
        except RunError:
            raise  # a checkpoint that cannot be used
        except GanlabError as error:
            # The error of a plugin or a file, but after training began: a failed run, not a usage error.
            raise self._failed(str(error)) from error
        finally:
            if self._warnings.seen or "health" in fields:
                fields["health"] = [*fields.get("health", ()), *self._health()]
            self._journal.close(self._trainer.state.step, status, **fields)

    def _failed(self, reason: str) -> TrainingFailedError:
        return TrainingFailedError(f"Training failed after step {self._trainer.state.step}: {reason}")

    def _resume(self, checkpoint: Checkpoint) -> None:
        """Restores what the checkpoint holds besides the state, and does the work that it records as owed."""
        self._rows.resume(checkpoint.pending())
        with checkpoint.using("watch"):
            watch = checkpoint.watch
            if watch:
                self._warnings.resume(watch["warnings"])
                self._looks.resume(watch["diagnostics"])
                self._evaluation.resume(watch.get("evaluators", {}))
        owed = checkpoint.owed
        if owed is None:
            self._saved_at = checkpoint.step
        else:
            # If a checkpoint is due at this step it is written again: this one would owe the row forever.
            self._do_what_is_due(owed)

    def _iterate(self) -> str:
        experiment, trainer = self._experiment, self._trainer
        length = 1
        while trainer.state.step < experiment.steps:
            step = trainer.state.step
            length = min(length, _to_next(step, experiment))
            begun = time.monotonic()
            values = trainer.train(length)
            row = self._take(step, values)
            # All processes must take the same decisions, so the slowest one's time and any one's signal count for all.
            seconds, stop = trainer.agree([time.monotonic() - begun, float(self._received.first or 0)])
            length = max(1, min(2 * length, int(length * _CHUNK_SECONDS / max(seconds, 1e-6))))
            if stop and trainer.state.step < experiment.steps:
                self._signal = signal.Signals(int(stop)).name
                # An evaluation may take longer than the user or scheduler will wait: the resumed run does it.
                self._leave(row)
                return "interrupted"
            self._do_what_is_due(row)
        return "completed"

    def _take(self, step: int, values: np.ndarray) -> list[Record]:
        """Writes the rows that these iterations complete, except the present step's, which is returned."""
        good, bad = check_finite(values), self._trainer.not_finite()
        row: list[Record] = []
        # The first bad iteration is written too: it shows which metrics are not finite.
        rows = self._rows.add(step, values) if good is None else self._rows.breaking(step, values[: good + 1])
        for records in rows:
            self._journal.row(row)
            row = records
            self._warn(records)
        if good is not None or bad:
            self._journal.row(row)
            reached = step + (len(values) if good is None else good + 1)
            self._journal.row(self._rows.rest(reached))
            latest = self._checkpoints.latest()
            found = None if good is None else values[good]
            raise diverged(self._trainer.metrics, reached, found, latest.step if latest else None, bad)
        state = self._trainer.state
        if row and row[0].step != state.step:
            self._journal.row(row)
            row = []
        warning = check_replicas(list(state.variables()), self._trainer.sums, state.step)
        if warning:
            self._journal.warn(state.step, warning)
        return row

    def _do_what_is_due(self, row: list[Record]) -> None:
        """Writes the present step's row, with an evaluation if one is due, and then a checkpoint if one is due."""
        experiment, step = self._experiment, self._trainer.state.step
        last = step == experiment.steps
        rest = self._rows.rest(step) if last else []
        if rest:
            self._warn(rest)
        row = [*row, *rest]
        found: list[Record] = []
        if self._chief:
            try:
                # With several workers the others would wait for this one, so a signal takes effect after a chunk.
                alone = not of_several(self._experiment.strategy)
                watch = Watch(self._received, self._journal.say, alone=alone)
                with watch.over(functools.partial(self._abandon, row)), self._received.leaving(alone):
                    found = self._look(step, last)
            except BaseException:
                self._leave(row)
                raise
        row += found
        self._journal.row(row)
        if last or _due(step, experiment.checkpoint_every):
            self._save()
        self._journal.note_now_and_then(step)

    def _look(self, step: int, last: bool) -> list[Record]:
        """Evaluates and diagnoses if due; returns the figures of both."""
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
            self._journal.findings(step, looked, self._health())
            records += looked.records
        return records

    def _warn(self, row: list[Record]) -> None:
        for warning in self._warnings.row(row):
            self._journal.warn(row[0].step, warning)

    def _health(self) -> list[str]:
        """The present problems, in sentences that begin with the name of the component that reports them."""
        return [*self._warnings.complaints, *self._looks.complaints, *self._evaluation.complaints]

    def _leave(self, row: list[Record]) -> None:
        """Writes the present step's row and a checkpoint; a run resumed from it does the work due at this step."""
        self._journal.row(row)
        self._save(owed=row)

    def _abandon(self, row: list[Record], status: str, sent: str | None) -> None:
        """Saves and closes the run when the thread that trains it does not respond."""
        self._leave(row)
        self._journal.close(self._trainer.state.step, status, signal=sent)
        (self._run.path / LOCK).unlink(missing_ok=True)

    def _save(self, *, owed: list[Record] | None = None) -> None:
        state = self._trainer.state
        if state.step == self._saved_at or not self._chief:
            return
        # The rows up to a checkpoint must be on disk before it, because a resumed run does not write them again.
        self._journal.note(state.step)
        self._journal.flush()
        self._checkpoints.save(
            state.step,
            state.variables(),
            self._rows.pending,
            metrics=self._trainer.metrics,
            replicas=self._experiment.replicas,
            owed=owed,
            watch={
                "warnings": self._warnings.state(),
                "diagnostics": self._looks.state(),
                "evaluators": self._evaluation.state(),
                "warned": self._journal.warned,
                "rows": self._journal.rows,
            },
        )
        self._saved_at = state.step


@contextlib.contextmanager
def written(run: RunDirectory) -> Iterator[None]:
    """Context manager: turns an OSError while writing the run into a TrainingFailedError."""
    try:
        yield
    except OSError as error:
        raise _unwritable(run, error) from error


def _unwritable(run: RunDirectory, error: OSError) -> TrainingFailedError:
    return TrainingFailedError(
        f"{run.path} cannot be written: {error}. Fix that and resume from the newest checkpoint: "
        f"ganlab run --resume {shlex.quote(str(run.path))}"
    )


def is_chief(experiment: Experiment) -> bool:
    """Whether this process writes what all of them train."""
    return bool(experiment.strategy.extended.should_checkpoint)


def _due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0


def _to_next(step: int, experiment: Experiment) -> int:
    """Iterations until something is due."""
    everys = [experiment.evaluate_every, experiment.checkpoint_every, *(d.every for d in experiment.diagnostics)]
    return min([experiment.steps - step, *(every - step % every for every in everys if every)])
