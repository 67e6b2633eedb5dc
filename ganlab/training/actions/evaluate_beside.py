"""Evaluation in a process of its own, while training goes on."""

from __future__ import annotations

import base64
from typing import Any

from ganlab.composition import Experiment
from ganlab.runs import RunDirectory
from ganlab.telemetry import Record
from ganlab.training.actions.action import Action, Moment
from ganlab.training.actions.evaluate import Evaluate
from ganlab.training.beside_process import Beside
from ganlab.training.checkpoints import Checkpoints
from ganlab.training.evaluation import Evaluation
from ganlab.training.run_log import RunLog


class EvaluateBeside(Evaluate):
    """Has checkpoints evaluated elsewhere; the last evaluation, which nothing goes on beside, is made here.

    The rows of metrics.jsonl from an evaluated step on wait for its figures, so that the file is the same as without
    this. The checkpoint of that step owes the evaluation, and no later one is saved before it has come: a run that ends
    before resumes there.

    Attributes:
        wanted: The step whose checkpoint is to be saved and evaluated, or None.
    """

    def __init__(
        self,
        experiment: Experiment,
        evaluation: Evaluation,
        run: RunDirectory,
        run_log: RunLog,
        checkpoints: Checkpoints,
    ) -> None:
        super().__init__(experiment, evaluation, run, run_log)
        self._saved_every, self._checkpoints = experiment.checkpoint_every, checkpoints
        self._process: Beside | None = None
        self.wanted: int | None = None

    @property
    def outstanding(self) -> bool:
        """Whether an evaluation was asked for and has not come."""
        return self._process is not None and self._process.asked is not None

    def open(self) -> None:
        """Starts the process, unless all evaluations are made here."""
        if self.every:
            self._process = Beside(self._run)

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.close()

    def due(self, now: Moment) -> bool:
        """Whether an evaluation is due, or a checkpoint, which waits for the last evaluation."""
        saved = self._saved_every > 0 and now.step % self._saved_every == 0
        return super().due(now) or (saved and self.outstanding)

    def look(self) -> None:
        """Takes the evaluation if it has come.

        Raises:
            GanlabError: It failed, or the process cannot make the experiment.
        """
        self._take(wait=False)

    def __call__(self, now: Moment) -> None:
        """Waits for the last evaluation; at the end of training evaluates, and before it wants this step evaluated."""
        self._take(wait=True)
        if now.last:
            super().__call__(now)
        elif super().due(now):
            self._run_log.hold()
            self.wanted = now.step

    def ask(self) -> None:
        """Has the checkpoint of the wanted step evaluated, which is saved by now."""
        newest = self._checkpoints.latest()
        assert self._process is not None
        assert newest is not None
        assert newest.step == self.wanted
        self._process.ask(newest.step, newest.path)
        self.wanted = None

    def _take(self, *, wait: bool) -> None:
        step = self._process.asked if self._process is not None else None
        found = self._process.answer(wait=wait) if self._process is not None else None
        if found is None or step is None:
            return
        self._evaluation.resume(found["complaints"])
        self._run_log.release([Record(step, str(tag), float(value)) for tag, value in found["records"]])
        if found["picture"] is not None:
            self._run_log.picture(step, base64.b64decode(found["picture"]))
        if found["figures"]:
            self._run.update(evaluation={name: float(value) for name, value in found["figures"].items()})


class Ask(Action):
    """Asks for the evaluation beside training, after its checkpoint."""

    def __init__(self, evaluate: EvaluateBeside) -> None:
        self._evaluate = evaluate

    def next(self, step: int) -> int | None:
        """None: it is due when the evaluation is."""
        return None

    def due(self, now: Moment) -> bool:
        """Whether this step's evaluation is wanted."""
        return self._evaluate.wanted == now.step

    def __call__(self, now: Moment) -> Any:
        """Asks."""
        self._evaluate.ask()
