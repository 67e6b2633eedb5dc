"""Checkpoints: all state of a run at one step."""

from __future__ import annotations

from collections.abc import Sequence

from ganlab.composition import Experiment
from ganlab.runs import RunDirectory
from ganlab.telemetry import Record
from ganlab.training.actions.action import Action, Moment
from ganlab.training.actions.best import KeepBest
from ganlab.training.actions.evaluate_beside import EvaluateBeside
from ganlab.training.actions.log import Log
from ganlab.training.checkpoints import Checkpoint, Checkpoints
from ganlab.training.graph.trainer import Trainer
from ganlab.training.run_log import RunLog


class SaveCheckpoint(Action):
    """Saves a checkpoint every `experiment.checkpoint_every` steps and at the end, with the state of all actions."""

    def __init__(
        self,
        experiment: Experiment,
        trainer: Trainer,
        run: RunDirectory,
        run_log: RunLog,
        checkpoints: Checkpoints,
        log: Log,
        best: KeepBest,
        actions: Sequence[Action],
        beside: EvaluateBeside | None = None,
    ) -> None:
        """Takes what it saves.

        Args:
            experiment: The experiment.
            trainer: Holds the variables.
            run: The run, whose run.json names the best step.
            run_log: Holds the warnings, and counts the rows.
            checkpoints: The run's.
            log: Holds the iterations since the last row.
            best: Knows the step whose checkpoint stays.
            actions: The others with state.
            beside: Evaluates checkpoints beside training, or None.
        """
        self.every = experiment.checkpoint_every
        self._experiment, self._trainer, self._run, self._run_log = experiment, trainer, run, run_log
        self._checkpoints, self._log, self._best, self._actions = checkpoints, log, best, (*actions, best)
        self._beside = beside
        self._saved_at = -1

    def due(self, now: Moment) -> bool:
        """Whether it is due, also because no step was better, or because this one is to be evaluated elsewhere."""
        return super().due(now) or self._best.is_best(now.step) or self._is_wanted(now.step)

    def _is_wanted(self, step: int) -> bool:
        return self._beside is not None and self._beside.wanted == step

    def __call__(self, now: Moment) -> None:
        """Saves."""
        self.save(owed=list(now.row) if self._is_wanted(now.step) else None)

    def save(self, *, owed: list[Record] | None = None) -> None:
        """Saves, unless this step is saved already.

        Args:
            owed: The row of this step, if its evaluations and diagnostics are left to the run that resumes here.
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
            self._log.pending,
            metrics=self._trainer.metrics,
            replicas=self._experiment.replicas,
            owed=owed,
            watch={
                **{action.name: action.state() for action in self._actions},
                "warned": self._run_log.warned,
                # Those that are held are written again with what is owed.
                "rows": self._run_log.rows - self._run_log.held + bool(owed and self._run_log.held),
            },
            best=self._best.best.step if self._best.best else None,
        )
        if self._saved_at < 0:  # from now on, a run without checkpoints has lost them
            self._run.update(checkpointed=True)
        self._saved_at = state.step
        if self._best.best is not None and self._best.is_best(state.step):
            self._run.update(best=self._best.state())

    def restore(self, checkpoint: Checkpoint) -> None:
        """Gives all actions the state that a checkpoint kept."""
        self._log.resume_at(checkpoint.pending())
        with checkpoint.using("watch"):
            watch = checkpoint.watch
            for action in self._actions if watch else ():
                action.resume(watch.get(action.name, {}))
        if checkpoint.owed is None:
            self._saved_at = checkpoint.step  # else it is saved again here: that checkpoint would owe the row forever
