"""A run's training at an earlier step, from which it trains again without writing anything into the run."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ganlab.composition import compose
from ganlab.config import flatten
from ganlab.errors import RunError
from ganlab.runs import RunDirectory
from ganlab.runs.changes import EXTENDS, STEPS, changes_of, ends_of, past, settled_at
from ganlab.runs.given import differences
from ganlab.runs.origins import CODE, DATA, code_changes, data_changes, data_of, recorded
from ganlab.runs.sources import of_parts
from ganlab.support.terminal import line
from ganlab.telemetry import Record
from ganlab.training.checkpoints import Checkpoint, Checkpoints, restore
from ganlab.training.graph.guards import check_finite
from ganlab.training.graph.learning_rate import changed_by_steps
from ganlab.training.graph.tf_errors import of_several
from ganlab.training.graph.trainer import Trainer
from ganlab.training.pending_rows import Rows
from ganlab.training.prepared import create
from ganlab.training.recorded_origins import Origins
from ganlab.training.starting_weights import start_from

# The host is asked for news between chunks of about this length.
_CHUNK_SECONDS = 1.0

Say = Callable[[str], None]


class Rewound:
    """A run's trainer, rewound to the newest checkpoint that is early enough, or to the start.

    Attributes:
        run: The run.
        experiment: Its experiment.
        trainer: Its trainer; `trainer.state` is the training at the present step.
        start: The step of the checkpoint that training begins from here; 0 for new weights.
        ends: The steps at which the run ends, or ended before it was extended.
        broken: Whether a metric was not finite, so that the run ends at the present step.
    """

    def __init__(self, run: RunDirectory, step: int, until: int, say: Say = lambda text: None) -> None:
        """Rewinds.

        Args:
            run: The run, finished or not.
            step: The latest step to begin from.
            until: The step that it will be trained to.
            say: Called with sentences about what may differ from the first time.

        Raises:
            RunError: The run's settings changed after that step, or it has not come so far, or has several workers; or
                its config.gin was edited; or the experiment that a caller gave for it has other data.
        """
        run.check()
        self.run, info = run, run.info
        done = info.get("step", 0)
        if not 0 <= step <= until <= done:
            raise RunError(f"{line(run.path)} was trained to step {done}; step {until} is not one of its steps.")
        changed, forked = settled_at(info), info.get("forked_from") or {}
        how, remedy = "resumed", ""
        if changed > max((change.step for change in changes_of(info)), default=0):
            parent = str(forked.get("run"))
            command = f"ganlab replay {line(shlex.quote(parent))} --step {min(until, changed)}"
            how, remedy = f"forked from {line(parent)}", f" Try: {command}"
        if step < changed:
            raise RunError(
                f"{line(run.path)} was {how} with changes at step {changed}, and what it was trained with before is "
                f"no longer recorded: steps up to {changed} cannot be trained again.{remedy}"
            )
        recipe = run.recipe()
        if edited := differences(info.get("settings"), flatten(recipe)):
            raise RunError(
                f"{line(run.path)} was trained with other settings than its config.gin has now: {'; '.join(edited)}. "
                "Restore the file, or the version of the plugin."
            )
        self.experiment = experiment = compose(recipe)
        self.ends = {experiment.steps, *ends_of(info)}
        if of_several(experiment.strategy):
            raise RunError(
                f"{line(run.path)} was trained by several workers, which would all have to take part: resume it "
                "instead, or train it with one worker."
            )
        if experiment.replicas != info.get("replicas", experiment.replicas):
            raise RunError(
                f"{line(run.path)} was trained on {info.get('replicas')} replicas, and here its strategy has "
                f"{experiment.replicas}: sums in another order give other digits."
            )
        for kind, lines in (
            ("code", code_changes(recorded(info, CODE), of_parts(recipe))),
            ("data", data_changes(recorded(info, DATA), data_of(experiment.dataset, experiment.source))),
        ):
            if kind == "data" and lines and run.experiment is not None:
                raise RunError(
                    f"{line(run.path)} was trained on other data than its experiment has now: {'; '.join(lines)}. Give "
                    "the data that it was trained on."
                )
            for change in lines:
                say(f"The {kind} has changed since the run, so its numbers may differ: {change}")
        self.trainer = Trainer(experiment)
        self.trainer.trace()
        self._rows = self._rows_of(experiment.log_every)
        self.broken = False
        checkpoint = self._nearest(run, step, changed, say)
        if checkpoint is None:
            start_from(experiment.start_from, self.trainer.state, say, say, info.get("started_from"))
            self.start = 0
        else:
            checkpoint.check_fits(self.trainer.metrics, experiment.replicas)
            restore(checkpoint, self.trainer.state.variables())
            self.trainer.state.step = self.start = checkpoint.step
            self._rows.resume(checkpoint.pending())

    @property
    def step(self) -> int:
        """The present step: generator updates done."""
        return self.trainer.state.step

    @property
    def pending(self) -> np.ndarray:
        """The iterations since the last row, as checkpoints keep them."""
        return self._rows.pending

    def rows(self, until: int) -> Iterator[list[Record]]:
        """Trains to a step and yields the rows that the run logged on the way, without figures of evaluations."""
        for step, values in self.chunks(until):
            bad = check_finite(values)
            if bad is None:
                yield from self._rows.add(step, values)
            else:
                yield from self._rows.breaking(step, values[: bad + 1])
            if self.step in self.ends and (rest := self._rows.rest(self.step)):
                yield rest

    def iterations(self, until: int) -> Iterator[list[Record]]:
        """Trains to a step and yields a row for each iteration."""
        rows = self._rows_of(1)
        for step, values in self.chunks(until):
            yield from rows.add(step, values)

    def chunks(self, until: int) -> Iterator[tuple[int, np.ndarray]]:
        """Trains to a step; yields the step before each chunk, and its metrics `(iterations, replicas, metrics)`.

        It ends early, with `broken`, after an iteration with a metric that is not finite, as the run did.
        """
        length = 1
        while self.step < until and not self.broken:
            step, begun = self.step, time.monotonic()
            values = self.trainer.train(min(length, *(end - step for end in (until, *self.ends) if end > step)))
            self.broken = check_finite(values) is not None
            yield step, values
            seconds = max(time.monotonic() - begun, 1e-6)
            length = max(1, min(2 * length, int(length * _CHUNK_SECONDS / seconds)))

    def create_fork(self, trainer: Trainer, folder: Path, fill: Callable[[Path], None]) -> None:
        """Creates the directory of a run that is forked here: one that was interrupted at this step.

        `fill` writes its checkpoints and rows into it, before it has its name. The fork's trainer has been traced.

        Raises:
            RunError: The directory exists, or cannot be created.
        """
        experiment, info, at = trainer.experiment, self.run.info, self.step
        origins = Origins(experiment.dataset, experiment.recipe, experiment.source)
        origins.of_trainer(trainer)
        then, now = flatten(self.run.recipe()), flatten(experiment.recipe)
        settings = {name: now.get(name) for name in sorted(now.keys() | then.keys()) if now.get(name) != then.get(name)}
        resumed = past(info, at)
        if STEPS in settings and not changed_by_steps(experiment, self.experiment.steps, at):
            resumed.append({"step": at, "changes": [], EXTENDS: self.experiment.steps})
        create(
            experiment,
            trainer,
            origins,
            folder,
            info.get("started_from"),
            fill,
            forked_from={"run": str(self.run.path.absolute()), "step": at, "settings": settings},
            resumed=resumed,
            status="interrupted",
            step=at,
            checkpointed=True,
        )

    def _rows_of(self, every: int) -> Rows:
        return Rows(self.trainer.metrics, every, self.experiment.replicas, self.trainer.turn)

    def _nearest(self, run: RunDirectory, step: int, changed: int, say: Say) -> Checkpoint | None:
        """The newest sound checkpoint up to a step, or None if the run's first step is nearest."""
        for checkpoint in reversed(Checkpoints(run.path / "checkpoints").all()):
            if changed <= checkpoint.step <= step and checkpoint.pending_row is None:
                damage = checkpoint.damage()
                if damage is None:
                    return checkpoint
                say(f"The checkpoint {line(checkpoint.path)} is damaged ({damage}); an earlier one is used.")
        if changed:
            raise RunError(
                f"{line(run.path)} was resumed with changes at step {changed} and has no checkpoint between that and "
                f"step {step} any more, so that step cannot be trained again."
            )
        return None
