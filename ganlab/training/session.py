"""The outer loop of a run: chunks of iterations, and the work that is due between them."""

from __future__ import annotations

import contextlib
import functools
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from ganlab.errors import GanlabError, RunError, TrainingFailedError
from ganlab.runs.lock import LOCK
from ganlab.telemetry import Record
from ganlab.training.actions.action import Action, Moment
from ganlab.training.actions.best import KeepBest
from ganlab.training.actions.checkpoint import SaveCheckpoint
from ganlab.training.actions.diagnose import Diagnose
from ganlab.training.actions.evaluate import Evaluate, EvaluateBeside
from ganlab.training.actions.guard import Guard
from ganlab.training.actions.log import Log
from ganlab.training.actions.profile import Profile, Span
from ganlab.training.checkpoints import Checkpoints
from ganlab.training.graph.arithmetic import faster_precision
from ganlab.training.graph.guards import DivergedError, Warnings
from ganlab.training.graph.tf_errors import WorkerLostError, of_several
from ganlab.training.interruption import Received, StoppedError
from ganlab.training.prepared import Prepared
from ganlab.training.reports import Reports
from ganlab.training.run_log import RunLog, is_chief, written
from ganlab.training.watchdog import OverdueError, Watch

# Long enough to hide the host's work between chunks, short enough for Ctrl-C and the progress bar to respond.
_CHUNK_SECONDS = 1.0


class Session:
    """One `train` call on a run whose directory exists."""

    def __init__(
        self,
        prepared: Prepared,
        run_log: RunLog,
        received: Received,
        profile: Span | None = None,
        stop_at: int | None = None,
    ) -> None:
        run, trainer, experiment = prepared.run, prepared.trainer, prepared.trainer.experiment
        self._run, self._trainer, self._experiment, self._from = run, trainer, experiment, prepared.checkpoint
        self._run_log, self._received, self._stop_at = run_log, received, stop_at
        self._chief = is_chief(experiment.strategy)
        self._signal: str | None = None
        self._begun = False
        checkpoints = Checkpoints(run.path / "checkpoints")
        self._guard, self._log = Guard(trainer, run_log, checkpoints), Log(trainer, run_log)
        every, evaluation, schedule = experiment.evaluate_every, prepared.evaluation, prepared.schedule
        # In the order of the run's health, by their keys in checkpoints.
        self._reporting: dict[str, Warnings | Reports] = {
            "warnings": self._guard.warnings,
            "diagnostics": schedule,
            "evaluators": evaluation,
        }
        if experiment.evaluate_beside and self._chief:
            self._evaluate: Evaluate = EvaluateBeside(every, evaluation, run, run_log, experiment.checkpoint_every)
        else:
            self._evaluate = Evaluate(every, evaluation, run, run_log)
        diagnose = Diagnose(every, schedule, run_log, self._health)
        best = KeepBest(experiment.keep_best, every)
        self._save = SaveCheckpoint(
            trainer, run, run_log, checkpoints, self._log, best, self._evaluate, {**self._reporting, "best": best}
        )
        # The order is a guarantee: a row has the figures of its step, and rows are on disk before their checkpoint.
        self._profile = Profile(profile if self._chief else None, run.path, run_log.message)
        self._actions: tuple[Action, ...] = (self._evaluate, diagnose, best, self._log, self._save, self._profile)

    def train(self) -> None:
        """Trains until the end, a signal or a failure, and records in run.json which of these it was."""
        try:
            with written(self._run):
                self._train()
        except (GanlabError, TrainingFailedError) as error:
            with contextlib.suppress(OSError, RunError):  # the error may be that the disk is full
                self._run.update(error=str(error))
            if self._begun and isinstance(error, RunError):
                raise TrainingFailedError(
                    f"{error} Something moved, removed or changed the run's files while it trained. Put them back and "
                    f"resume from the newest checkpoint: ganlab run --resume {shlex.quote(str(self._run.path))}"
                ) from error
            raise

    def _train(self) -> None:
        status, outer = "failed", sys.exc_info()[1]  # which a caller may be handling
        fields: dict[str, Any] = {}
        try:
            self._evaluate.open()
            self._run_log.open(self._experiment.steps, self._trainer.state.step)
            if self._from is not None:
                self._save.restore(self._from)
                if self._from.pending_row is not None:  # the work that was due at its step
                    self._act(self._from.pending_row)
            elif self._chief and (hint := faster_precision(self._experiment)):
                self._run_log.message(hint)
            self._begun = True
            status = self._iterate()
            if status == "interrupted":
                fields["signal"] = self._signal
        except DivergedError as error:
            status = "diverged"
            fields |= {"health": [f"training: {error}"], "diverged_at": error.step}
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
            raise  # of a checkpoint or run.json, no plugin's
        except GanlabError as error:
            # The error of a plugin or a file, but after training began: a failed run, not a usage error.
            raise self._failed(str(error)) from error
        finally:
            self._profile.stop()
            self._evaluate.close()
            if self._guard.warnings.seen or "health" in fields:
                fields["health"] = [*fields.get("health", ()), *self._health()]
            failure = sys.exc_info()[1]
            if failure is not outer and isinstance(failure, (GanlabError, TrainingFailedError)):  # trackers read it
                fields["error"] = str(failure)
            self._run_log.close(self._trainer.state.step, status, **fields)

    def _failed(self, reason: str) -> TrainingFailedError:
        return TrainingFailedError(f"Training failed after step {self._trainer.state.step}: {reason}")

    def _iterate(self) -> str:
        experiment, trainer = self._experiment, self._trainer
        length = 1
        self._profile.begin(trainer.state.step, experiment.steps)
        while trainer.state.step < experiment.steps:
            step = trainer.state.step
            due = (experiment.steps, self._stop_at, *(action.next(step) for action in self._actions))
            length = min(length, *(at - step for at in due if at is not None and at > step))
            begun = time.monotonic()
            values = trainer.train(length)
            self._run_log.time_from(trainer.state.step)
            row = self._take(step, values)
            # All processes must take the same decisions, so the slowest one's time and any one's signal count for all.
            seconds, stop = trainer.agree([time.monotonic() - begun, float(self._received.first or 0)])
            length = max(1, min(2 * length, int(length * _CHUNK_SECONDS / max(seconds, 1e-6))))
            if (stop or trainer.state.step == self._stop_at) and trainer.state.step < experiment.steps:
                self._signal = signal.Signals(int(stop)).name if stop else None
                # An evaluation may take longer than the user or scheduler will wait: the resumed run does it.
                self._leave(row)
                return "interrupted"
            self._act(row)
        return "completed"

    def _take(self, step: int, values: np.ndarray) -> list[Record]:
        """Guards a chunk and writes the rows that it completes, except its last step's, which is returned."""
        bad, error = self._guard.divergence(step, values)
        if error is not None:
            until = len(values) if bad is None else bad + 1
            self._log.take_broken(step, values[:until], finite=bad is None, each=self._guard.row)
            raise error
        row = self._log.take(step, values, self._guard.row)
        self._guard(Moment(self._trainer.state.step, False, row))
        return row

    def _act(self, row: list[Record]) -> None:
        """Does everything that is due after a chunk."""
        step = self._trainer.state.step
        now = Moment(step, step == self._experiment.steps, list(row))
        if now.last and (rest := self._log.rows.rest(step)):
            self._guard.row(rest)
            now.row += rest
        actions = [action for action in self._actions if self._chief or action.everywhere]
        for action in actions:
            action.look()
        waiting = [action for action in actions if action.can_wait and action.due(now)]
        with self._watched(now) if waiting else contextlib.nullcontext():
            for action in waiting:
                action(now)
        for action in actions:
            if not action.can_wait and action.due(now):  # the log is due also where something was found
                action(now)
        self._run_log.note_now_and_then(step)

    @contextlib.contextmanager
    def _watched(self, now: Moment) -> Iterator[None]:
        """Context manager: a signal or a failure inside leaves what is due at this step to a resumed run."""
        # With several workers the others would wait for this one, so a signal takes effect after a chunk.
        alone = not of_several(self._experiment.strategy)
        watch = Watch(self._received, self._run_log.say, alone=alone)
        try:
            with watch.over(functools.partial(self._abandon, now.row)), self._received.leaving(alone):
                yield
        except BaseException:
            self._leave(now.row)
            raise

    def _health(self) -> list[str]:
        """The present problems, in sentences that begin with the name of the component that reports them."""
        return [complaint for reporting in self._reporting.values() for complaint in reporting.complaints]

    def _leave(self, row: list[Record]) -> None:
        """Writes the present step's row and a checkpoint; a run resumed from it does the work due at this step."""
        self._run_log.row(row)
        # The evaluation of the newest checkpoint has not come: that one stays the newest.
        if self._chief and not self._evaluate.outstanding:
            self._save.save(pending_row=row)

    def _abandon(self, row: list[Record], status: str, sent: str | None) -> None:
        """Saves and closes the run when the thread that trains it does not respond."""
        self._leave(row)
        self._run_log.close(self._trainer.state.step, status, signal=sent)
        (self._run.path / LOCK).unlink(missing_ok=True)
