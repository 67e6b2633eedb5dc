"""The log: rows of metrics, written to every writer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ganlab.telemetry import Record
from ganlab.training.actions.action import Action, Moment
from ganlab.training.graph.trainer import Trainer
from ganlab.training.pending_rows import Rows
from ganlab.training.run_log import RunLog


class Log(Action):
    """Writes rows as iterations complete them, and at the end the row of the iterations that are left.

    Attributes:
        rows: The iterations since the last row, which checkpoints keep.
    """

    everywhere = True  # each process has a screen

    def __init__(self, trainer: Trainer, run_log: RunLog) -> None:
        experiment = trainer.experiment
        self.rows = Rows(trainer.metrics, experiment.log_every, experiment.replicas, trainer.turn)
        self._run_log = run_log

    def take(self, step: int, values: np.ndarray, each: Callable[[list[Record]], None]) -> list[Record]:
        """Writes the rows that a chunk after `step` completes, except that of its last step; `each` gets them first.

        Returns:
            The row of the chunk's last step, which may have more to come; empty if none is due there.
        """
        row: list[Record] = []
        for records in self.rows.add(step, values):
            self._run_log.row(row)
            row = records
            each(records)
        if row and row[0].step != step + len(values):
            self._run_log.row(row)
            row = []
        return row

    def take_broken(self, step: int, values: np.ndarray, *, finite: bool, each: Callable[[list[Record]], None]) -> None:
        """Writes all rows of the last chunk of a run that diverged; `values` end with the first bad iteration."""
        for records in self.rows.add(step, values) if finite else self.rows.breaking(step, values):
            each(records)
            self._run_log.row(records)
        self._run_log.row(self.rows.rest(step + len(values)))

    def due(self, now: Moment) -> bool:
        """Whether there is anything to write."""
        return bool(now.row or now.found)

    def __call__(self, now: Moment) -> None:
        """Writes the present row, with the figures that were found."""
        self._run_log.row([*now.row, *now.found])
