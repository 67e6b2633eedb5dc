"""The outer loop over a run that exists: chunks of iterations, and what is due between them."""

from __future__ import annotations

import contextlib
import shlex
import signal
import time
from collections.abc import Iterator

import numpy as np

from ganlab.composition import Experiment
from ganlab.errors import GanlabError, RunError, TrainingFailedError
from ganlab.runs import Run
from ganlab.telemetry import Record
from ganlab.training.checkpoints import Checkpoint, Checkpoints
from ganlab.training.evaluation import Evaluation
from ganlab.training.failures import WorkerLostError, of_several
from ganlab.training.guards import DivergedError, Warnings, check_finite, check_replicas, diverged
from ganlab.training.journal import Journal
from ganlab.training.looking import Looks
from ganlab.training.loop import Trainer
from ganlab.training.rows import Rows
from ganlab.training.stopping import Received, StoppedError

# Long enough that what the host does between chunks is lost in it, short enough that Ctrl-C and the bar answer.
_CHUNK_SECONDS = 1.0


class Session:
    """One `train` call over a run that exists."""

    def __init__(
        self,
        experiment: Experiment,
        trainer: Trainer,
        evaluation: Evaluation,
        looks: Looks,
        run: Run,
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
        """Trains until the end, a signal or a failure, which run.json tells in every case.

        Args:
            checkpoint: What the trainer's state was restored from, or None.

        Raises:
            TrainingFailedError: Training could not go on.
        """
        with written(self._run):
            self._train(checkpoint)

    def _train(self, checkpoint: Checkpoint | None) -> None:
        status, fields = "failed", {}
        try:
            self._journal.open(self._experiment.steps, self._trainer.state.step)
            if checkpoint is not None:
                self._go_on(checkpoint)
            status = self._iterate()
            if status == "interrupted":
                fields["signal"] = self._signal
        except DivergedError:
            status = "diverged"
            raise
        except WorkerLostError:
            status = "interrupted"
            raise
        except StoppedError:
            status, fields["signal"] = "interrupted", self._received.first.name if self._received.first else None
        except KeyboardInterrupt:
            status, fields["signal"] = "interrupted", "SIGINT"
            raise
        except RunError:
            raise  # a checkpoint that cannot be used
        except GanlabError as error:
            # Of a plugin or a file, but after training began: it ends a run, and is no mistake on the command line.
            raise TrainingFailedError(f"Training failed after step {self._trainer.state.step}: {error}") from error
        finally:
            self._journal.close(self._trainer.state.step, status, **fields)

    def _go_on(self, checkpoint: Checkpoint) -> None:
        """Takes what the checkpoint remembers beside the state, and does what it says is owed."""
        self._rows.go_on(checkpoint.pending())
        with checkpoint.using("watch"):
            watch = checkpoint.watch
            if watch:
                self._warnings.go_on(watch["warnings"])
                self._looks.go_on(watch["diagnostics"])
        owed = checkpoint.owed
        if owed is None:
            self._saved_at = checkpoint.step
        else:
            # Where a checkpoint is due it is written again: this one would owe the row for ever.
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
            # Every process must take the same turns, so the slowest one's time and anybody's signal count for all.
            seconds, stop = trainer.agree([time.monotonic() - begun, float(self._received.first or 0)])
            length = max(1, min(2 * length, int(length * _CHUNK_SECONDS / max(seconds, 1e-6))))
            if stop and trainer.state.step < experiment.steps:
                self._signal = signal.Signals(int(stop)).name
                # An evaluation may take longer than whoever stops the run will wait: the resumed run does it.
                self._leave(row)
                return "interrupted"
            self._do_what_is_due(row)
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
        found: list[Record] = []
        if self._chief:
            try:
                # The others of several workers would wait for this one, so they all hear of a signal after a chunk.
                with self._received.leaving(not of_several(self._experiment.strategy)):
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

    def _leave(self, row: list[Record]) -> None:
        """Writes the present step's row and a checkpoint from which a resumed run does what is due at this step."""
        self._journal.row(row)
        self._save(owed=row)

    def _save(self, *, owed: list[Record] | None = None) -> None:
        state = self._trainer.state
        if state.step == self._saved_at or not self._chief:
            return
        # A checkpoint must not be ahead of what is written of the steps that lead to it: nobody writes that again.
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
                "warned": self._journal.warned,
            },
        )
        self._saved_at = state.step


@contextlib.contextmanager
def written(run: Run) -> Iterator[None]:
    """Inside, a run's files are written: what the disk does not take is said in a sentence."""
    try:
        yield
    except OSError as error:
        raise _unwritable(run, error) from error


def _unwritable(run: Run, error: OSError) -> TrainingFailedError:
    return TrainingFailedError(
        f"{run.path} cannot be written: {error}. Mend that and go on from the newest checkpoint: "
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
