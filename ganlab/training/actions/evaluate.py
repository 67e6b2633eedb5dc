"""Evaluation: the evaluators' figures, certified bounds and a picture of samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ganlab.composition import Experiment
from ganlab.runs import RunDirectory
from ganlab.training.actions.action import Action, Moment
from ganlab.training.evaluation import Evaluation
from ganlab.training.run_log import RunLog


class Evaluate(Action):
    """Evaluates the generator every `experiment.evaluate_every` steps and at the end."""

    name = "evaluators"
    can_wait = True

    def __init__(self, experiment: Experiment, evaluation: Evaluation, run: RunDirectory, run_log: RunLog) -> None:
        self.every = experiment.evaluate_every
        self._evaluation, self._run, self._run_log = evaluation, run, run_log

    def __call__(self, now: Moment) -> None:
        """Evaluates; figures join the row."""
        evaluated = self._evaluation(now.step, self._run)
        now.found += evaluated.records
        if evaluated.picture is not None:
            self._run_log.picture(now.step, evaluated.picture)
        if evaluated.figures:
            self._run.update(evaluation=evaluated.figures)

    @property
    def complaints(self) -> Sequence[str]:
        """The reports of the evaluators on their last figures."""
        return self._evaluation.complaints

    def state(self) -> Any:
        """The last report of each evaluator."""
        return self._evaluation.state()

    def resume(self, state: Any) -> None:
        """Takes that."""
        self._evaluation.resume(state)
