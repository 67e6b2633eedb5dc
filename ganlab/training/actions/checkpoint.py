"""Checkpoints: all state of a run at one step."""

from __future__ import annotations

from collections.abc import Mapping

from ganlab.runs import RunDirectory
from ganlab.telemetry import Record
from ganlab.training.actions.action import Action, Moment
from ganlab.training.actions.best import KeepBest
from ganlab.training.actions.evaluate import Evaluate
from ganlab.training.actions.log import Log
from ganlab.training.checkpoints import Checkpoint, Checkpoints
from ganlab.training.graph.guards import Warnings
from ganlab.training.graph.trainer import Trainer
from ganlab.training.reports import Reports
from ganlab.training.run_log import RunLog


class SaveCheckpoint(Action):
    """Saves a checkpoint every `experiment.checkpoint_every` steps and at the end, with all that has state."""

    def __init__(
        self,
        trainer: Trainer,
        run: RunDirectory,
        run_log: RunLog,
        checkpoints: Checkpoints,
        log: Log,
        best: KeepBest,
        evaluate: Evaluate,
        kept: Mapping[str, Warnings | Reports | KeepBest],
    ) -> None:
        """Takes what it saves."""
        self.every = trainer.experiment.checkpoint_every
        self._trainer, self._run, self._run_log, self._checkpoints = trainer, run, run_log, checkpoints
        self._log, self._best, self._evaluate, self._kept = log, best, evaluate, kept
        self._saved_at = -1

    def due(self, now: Moment) -> bool:
        """Whether it is due, also because no step was better, or because this one is to be evaluated elsewhere."""
        return super().due(now) or self._best.is_best(now.step) or self._evaluate.wanted == now.step

    def __call__(self, now: Moment) -> None:
        """Saves; has the checkpoint evaluated where that is wanted."""
        wanted = self._evaluate.wanted == now.step
        self.save(pending_row=list(now.row) if wanted else None)
        if wanted:
            newest = self._checkpoints.latest()
            assert newest is not None
            assert newest.step == now.step
            self._evaluate.ask(newest)

    def save(self, *, pending_row: list[Record] | None = None) -> None:
        """Saves, unless this step is saved already.

        Args:
            pending_row: The row of this step, if its evaluations and diagnostics are left to the run that resumes here.
        """
        state = self._trainer.state
        if state.step == self._saved_at:
            return
        # The rows up to a checkpoint must be on disk before it, because a resumed run does not write them again.
        self._run_log.note(state.step)
        self._run_log.flush()
        self._checkpoints.save(
            state.step,
            state.variables(),
            self._log.rows.pending,
            metrics=self._trainer.metrics,
            replicas=self._trainer.experiment.replicas,
            pending_row=pending_row,
            watch={
                **{name: kept.state() for name, kept in self._kept.items()},
                "warned": self._run_log.warned,
                # Those that are held are written again with the pending row.
                "rows": self._run_log.rows - self._run_log.held + bool(pending_row and self._run_log.held),
            },
            best=self._best.best.step if self._best.best else None,
        )
        if self._saved_at < 0:  # from now on, a run without checkpoints has lost them
            self._run.update(checkpointed=True)
        self._saved_at = state.step
        if self._best.best is not None and self._best.is_best(state.step):
            self._run.update(best=self._best.state())

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restores the state that a checkpoint kept."""
        self._log.rows.resume(checkpoint.pending())
        with checkpoint.using("watch"):
            watch = checkpoint.watch
            for name, kept in self._kept.items() if watch else ():
                kept.resume(watch.get(name, {}))
        if checkpoint.pending_row is None:
            self._saved_at = checkpoint.step  # else it is saved again here, without the row that is written by then
