"""Diagnosis: diagnostics look at the critic, each at steps of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ganlab.training.actions.action import Action, Moment
from ganlab.training.diagnostics.schedule import DiagnosticSchedule
from ganlab.training.run_log import RunLog


class Diagnose(Action):
    """Lets the diagnostics look that are due; writes the run's health at each look and each evaluation."""

    can_wait = True

    def __init__(
        self, evaluate_every: int, schedule: DiagnosticSchedule, run_log: RunLog, health: Callable[[], Sequence[str]]
    ) -> None:
        self._evaluate_every, self._everys = evaluate_every, schedule.everys
        self._schedule, self._run_log, self._health = schedule, run_log, health

    def next(self, step: int) -> int | None:
        """The next step at which any of them is due."""
        return min((step + every - step % every for every in self._everys), default=None)

    def due(self, now: Moment) -> bool:
        """Whether any of them is due, or an evaluation."""
        return now.last or self._evaluating(now) or any(now.step % every == 0 for every in self._everys)

    def __call__(self, now: Moment) -> None:
        """Looks; figures join the row."""
        looked = self._schedule(now.step, evaluating=now.last or self._evaluating(now), last=now.last)
        if looked is not None:
            self._run_log.findings(now.step, looked, self._health())
            now.found += looked.records

    def _evaluating(self, now: Moment) -> bool:
        return self._evaluate_every > 0 and now.step % self._evaluate_every == 0
