"""The guard: stops a run that is no longer finite or whose replicas differ, and warns of constraints that complain."""

from __future__ import annotations

import numpy as np

from ganlab.telemetry import Record
from ganlab.training.actions.action import Action, Moment
from ganlab.training.checkpoints import Checkpoints
from ganlab.training.graph.guards import DivergedError, Warnings, check_finite, check_replicas, diverged
from ganlab.training.graph.trainer import Trainer
from ganlab.training.run_log import RunLog


class Guard(Action):
    """Looks at every chunk."""

    def __init__(self, trainer: Trainer, run_log: RunLog, checkpoints: Checkpoints) -> None:
        self._trainer, self._run_log, self._checkpoints = trainer, run_log, checkpoints
        stacks = [player.stack for player in trainer.state.players.values()]
        self._warnings = Warnings(stacks, trainer.metrics, trainer.experiment.steps)

    def divergence(self, step: int, values: np.ndarray) -> tuple[int | None, DivergedError | None]:
        """Searches a chunk that began at `step` for metrics and variables that are not finite.

        Returns:
            The first bad iteration of the chunk, None if all metrics are finite; and the error to raise once that much
            is written, None if nothing is wrong.
        """
        first, bad = check_finite(values), self._trainer.not_finite()
        if first is None and not bad:
            return None, None
        reached = step + (len(values) if first is None else first + 1)
        latest = self._checkpoints.latest()
        found = None if first is None else values[first]
        kept, done = latest.step if latest else None, step + len(values)
        return first, diverged(self._trainer.metrics, reached, found, kept, bad, done)

    def row(self, row: list[Record]) -> None:
        """Warns of what a row shows for the first time."""
        for warning in self._warnings.row(row):
            self._run_log.warn(row[0].step, warning)

    def __call__(self, now: Moment) -> None:
        """Compares the replicas; they may differ by rounding alone."""
        warning = check_replicas(list(self._trainer.state.variables()), self._trainer.sums, now.step)
        if warning:
            self._run_log.warn(now.step, warning)

    @property
    def warnings(self) -> Warnings:
        """The reports of constraints and losses on the last row, and how long each has complained."""
        return self._warnings
