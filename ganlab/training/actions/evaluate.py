"""Evaluation: the evaluators' figures, certified bounds and a picture of samples; here, or in a process of its own."""

from __future__ import annotations

from ganlab.runs import RunDirectory
from ganlab.training.actions.action import Action, Moment
from ganlab.training.beside import Beside
from ganlab.training.checkpoints import Checkpoint
from ganlab.training.evaluation import Evaluated, Evaluation
from ganlab.training.run_log import RunLog


class Evaluate(Action):
    """Evaluates the generator every `experiment.evaluate_every` steps and at the end.

    Attributes:
        wanted: The step whose checkpoint is to be saved and evaluated beside training, or None.
    """

    can_wait = True
    wanted: int | None = None

    def __init__(self, every: int, evaluation: Evaluation, run: RunDirectory, run_log: RunLog) -> None:
        self.every, self._evaluation, self._run, self._run_log = every, evaluation, run, run_log

    @property
    def outstanding(self) -> bool:
        """Whether an evaluation beside training was asked for and has not come."""
        return False

    def open(self) -> None:
        """Starts the process that evaluates beside training, if any."""

    def close(self) -> None:
        """Ends it."""

    def ask(self, checkpoint: Checkpoint) -> None:
        """Has the checkpoint of the wanted step evaluated beside training."""
        raise NotImplementedError

    def __call__(self, now: Moment) -> None:
        """Evaluates; figures join the row."""
        evaluated = self._evaluation(now.step, self._run)
        now.found += evaluated.records
        self._report(now.step, evaluated)

    def _report(self, step: int, evaluated: Evaluated) -> None:
        if evaluated.picture is not None:
            self._run_log.picture(step, evaluated.picture)
        if evaluated.figures:
            self._run.update(evaluation=evaluated.figures)


class EvaluateBeside(Evaluate):
    """Evaluates checkpoints in a separate process during training, and the last one in this process.

    The rows of metrics.jsonl from an evaluated step on wait for its figures, so that the file is the same as without
    this. The checkpoint of that step records that its evaluation is due, and no later one is saved before it has come:
    a run that ends before resumes there.
    """

    def __init__(
        self, every: int, evaluation: Evaluation, run: RunDirectory, run_log: RunLog, saved_every: int
    ) -> None:
        super().__init__(every, evaluation, run, run_log)
        self._saved_every = saved_every
        self._process: Beside | None = None

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
        """Takes the evaluation if it has come."""
        self._take(wait=False)

    def __call__(self, now: Moment) -> None:
        """Waits for the last evaluation; at the end of training evaluates, and before it wants this step evaluated."""
        self._take(wait=True)
        if now.last:
            super().__call__(now)
        elif super().due(now):
            self._run_log.hold()
            self.wanted = now.step

    def ask(self, checkpoint: Checkpoint) -> None:
        """Has the checkpoint of the wanted step evaluated."""
        assert self._process is not None
        self._process.ask(checkpoint.step, checkpoint.path)
        self.wanted = None

    def _take(self, *, wait: bool) -> None:
        step = self._process.asked if self._process is not None else None
        answer = self._process.answer(wait=wait) if self._process is not None else None
        if answer is None or step is None:
            return
        evaluated, complaints = answer
        self._evaluation.resume(complaints)
        self._run_log.release(evaluated.records)
        self._report(step, evaluated)
