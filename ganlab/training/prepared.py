"""Everything before the first iteration of a `train` call: of a new run, of one that is resumed, of another worker."""

from __future__ import annotations

import contextlib
import functools
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from ganlab import config
from ganlab.composition import Experiment
from ganlab.errors import RunError
from ganlab.plugins import manager as plugins
from ganlab.runs import RunDirectory, create_run, provenance
from ganlab.runs.changes import EXTENDS
from ganlab.runs.directory import METRICS
from ganlab.runs.lock import locked
from ganlab.runs.origins import DATA
from ganlab.runs.resuming import begin_again, check_no_fork, check_resumable, take_changes
from ganlab.support.formatting import counted
from ganlab.support.terminal import line
from ganlab.telemetry import Console
from ganlab.telemetry.jsonl_lines import rows
from ganlab.training.actions.best import check_metric
from ganlab.training.checkpoints import Checkpoint, Checkpoints, restore
from ganlab.training.diagnostics.schedule import DiagnosticSchedule
from ganlab.training.evaluation import Evaluation, declared_figures
from ganlab.training.graph.learning_rate import changed_by_steps
from ganlab.training.graph.sampling import label_frequencies
from ganlab.training.graph.tf_errors import translated_errors
from ganlab.training.graph.trainer import Trainer
from ganlab.training.recorded_origins import Origins
from ganlab.training.run_log import Past, is_chief, written
from ganlab.training.same_settings import check_same_settings
from ganlab.training.starting_weights import start_from

AsRun = Callable[..., RunDirectory]


@dataclass(frozen=True)
class Prepared:
    """A run whose directory exists, and what trains it.

    Attributes:
        run: The run.
        trainer: The traced graph, with the state that training begins from.
        evaluation: The evaluators, on this state.
        schedule: The diagnostics, on this state.
        checkpoint: The checkpoint that the state was restored from, or None.
        past: What of an earlier `train` call stays in the run's files; None for a new run.
        tags: Those of the trial before the first iteration; None if there was none.
    """

    run: RunDirectory
    trainer: Trainer
    evaluation: Evaluation
    schedule: DiagnosticSchedule
    checkpoint: Checkpoint | None = None
    past: Past | None = None
    tags: tuple[list[str], list[str]] | None = None

    def drawn(self) -> tuple[list[str], list[str]]:
        """The tags of the metrics that every replica logs, and of the figures of the run as a whole."""
        return self.tags or drawn(self.trainer, self.evaluation, self.schedule)


class Preparation:
    """Prepares a run in one of three ways. Nothing is written before all that can fail without it has been tried."""

    def __init__(
        self, experiment: Experiment, screen: Console, as_run: AsRun, make_trainer: Callable[[Experiment], Trainer]
    ) -> None:
        """Looks at the experiment's data and code."""
        self._experiment, self._screen, self._as_run, self._make_trainer = experiment, screen, as_run, make_trainer
        self._origins = Origins(experiment.dataset, experiment.recipe, experiment.source)

    def new(self, folder: Path, held: contextlib.ExitStack) -> Prepared:
        """Creates a run in a directory that does not exist; `held` keeps it locked."""
        self._build(resume=False)
        started = self._start_from(None)
        tags = self._tried()
        made = create(self._experiment, self._trainer, self._origins, folder, started)
        run = self._as_run(made.path, experiment=self._experiment)
        with written(run):
            held.enter_context(locked(run))
        return Prepared(run, self._trainer, self._evaluation, self._schedule, tags=tags)

    def resumed(self, run: RunDirectory, held: contextlib.ExitStack, *, allow_changes: bool) -> Prepared:
        """Restores a run's newest sound checkpoint, or begins the run again if it has none; `held` keeps it locked."""
        changes, extends = self._check_resumable(run, allow_changes)
        if changes:
            self._screen.message(f"Resumed with changes: {'; '.join(changes)}.")
        with written(run):
            held.enter_context(locked(run, self._screen.warning))
        self._build(resume=True)
        checkpoint = self._go_back(run, allow_changes=allow_changes, repair=True)
        started = tags = None
        if checkpoint is None:
            started, tags = self._start_from(run), self._tried()
        with written(run):
            take_changes(run, self._experiment.recipe)
            if checkpoint is None:
                begin_again(run)
            info = run.info
            again = {
                **_provenance(),
                **self._origins.news(info, self._screen.warning),
                "step": self._trainer.state.step,
            }
            again |= {"changes": changes, **({} if extends is None else {EXTENDS: extends})}
            run.update(
                resumed=[*info.get("resumed", []), again],
                checkpointed=checkpoint is not None,
                **_of_experiment(self._experiment, started),
            )
        past = Past() if checkpoint is None else Past(checkpoint.last_row, checkpoint.warned, checkpoint.rows)
        return Prepared(run, self._trainer, self._evaluation, self._schedule, checkpoint, past, tags)

    def worker(self, before: RunDirectory | None, *, allow_changes: bool) -> Prepared:
        """Does as the chief does, which may resume the run `before`, in a folder that is removed with the run."""
        if before is not None:
            self._check_resumable(before, allow_changes)
        self._build(resume=before is not None)
        checkpoint = self._go_back(before, allow_changes=allow_changes, repair=False) if before is not None else None
        if checkpoint is None:
            self._start_from(before)
        scratch = tempfile.TemporaryDirectory(prefix="ganlab-worker-")
        made = create(self._experiment, self._trainer, self._origins, Path(scratch.name) / "run")
        run = self._as_run(made.path, experiment=self._experiment, keeps=scratch)
        return Prepared(run, self._trainer, self._evaluation, self._schedule, checkpoint)

    def _check_resumable(self, run: RunDirectory, allow_changes: bool) -> tuple[list[str], int | None]:
        return check_resumable(
            run,
            self._experiment.recipe,
            allow_changes=allow_changes,
            data=self._origins.fields[DATA],
            changed_by_steps=functools.partial(changed_by_steps, self._experiment),
        )

    def _build(self, *, resume: bool) -> None:
        """Makes and traces the graph; all workers must have the same settings, data and code."""
        experiment, replicas = self._experiment, self._experiment.replicas
        plural = "replica" if replicas == 1 else "replicas"
        strategy = type(experiment.strategy).__name__
        self._screen.message(f"{strategy}: {replicas} {plural}, {experiment.local_batch} examples each. Tracing ...")
        check_same_settings(experiment, resume=resume)
        with translated_errors(experiment, 0):
            self._trainer = self._make_trainer(experiment)
        self._trainer.trace()
        self._origins.of_trainer(self._trainer)
        self._evaluation = Evaluation(experiment, self._trainer.state)
        self._schedule = DiagnosticSchedule(experiment, self._trainer.state)

    def _start_from(self, before: RunDirectory | None) -> dict[str, Any] | None:
        recorded = before.info.get("started_from") if before is not None else None
        screen = self._screen
        return start_from(self._experiment.start_from, self._trainer.state, screen.message, screen.warning, recorded)

    def _tried(self) -> tuple[list[str], list[str]]:
        """Evaluates and diagnoses once before anything is written, so that what cannot work fails now."""
        tags = drawn(self._trainer, self._evaluation, self._schedule)
        check_metric(self._experiment.keep_best, tags[1])
        return tags

    def _go_back(self, run: RunDirectory, *, allow_changes: bool, repair: bool) -> Checkpoint | None:
        """Gives the trainer the state of a run's newest sound checkpoint.

        Returns:
            The checkpoint, or None if there is none and the run starts again.

        Raises:
            RunError: It does not fit the experiment, several workers do not find the same one, or a fork has none.
        """
        trainer = self._trainer
        checkpoint = Checkpoints(run.path / "checkpoints").latest_sound(self._screen.warning, repair=repair)
        step = checkpoint.step if checkpoint else 0
        # In two numbers, because float32 has no whole numbers between some beyond 2^24.
        if not trainer.alike(divmod(step, 1 << 20)):
            raise RunError(
                f"The workers do not find the same newest checkpoint of {run.path}; this one finds that of step {step}."
                " All of them must see the chief's folder of runs: use a shared folder."
            )
        if checkpoint is None:
            check_no_fork(run.path, run.info)
            if repair:
                self._screen.warning(_from_the_start(run))
            return None
        if not allow_changes:
            checkpoint.check_fits(trainer.metrics, self._experiment.replicas)
        # The experiment's learning rate counts, which may be what has changed, and not the one that was saved.
        with trainer.state.own_rates() if allow_changes else contextlib.nullcontext():
            restore(checkpoint, trainer.state.variables())
        trainer.state.step = checkpoint.step
        return checkpoint


def drawn(trainer: Trainer, evaluation: Evaluation, schedule: DiagnosticSchedule) -> tuple[list[str], list[str]]:
    """The tags of the metrics that every replica logs, and of the figures of the run as a whole, by a trial of all."""
    figures = [record.tag for record in evaluation(0, None).records]
    looked = [record.tag for record in schedule.check().records if record.replicas]
    return [*(metric.tag for metric in trainer.metrics), *looked], figures


def create(
    experiment: Experiment,
    trainer: Trainer,
    origins: Origins,
    folder: Path,
    started: Mapping[str, Any] | None = None,
    fill: Callable[[Path], None] = lambda folder: None,
    **more: Any,
) -> RunDirectory:
    """Creates the directory of a run, which does not exist; its trainer has been traced.

    `started` is recorded of the run whose weights it begins with, and `more` are further fields of run.json. `fill`
    writes what the directory has besides from the first moment on.
    """
    recipe, dataset = experiment.recipe, experiment.dataset
    shapes = {name: shape for name, shape in experiment.facts.items() if name != "classes" and shape}
    frequencies = label_frequencies(dataset, experiment.seed) if experiment.architecture.conditional else None
    info = {
        "status": "running",
        "step": 0,
        "steps": experiment.steps,
        "seed": experiment.seed,
        "chief": is_chief(experiment.strategy),
        "checkpointed": False,
        "compiled": trainer.compiled,
        "settings": config.flatten(recipe),
        "sample_shape": list(dataset.sample_shape),
        "label_frequencies": frequencies,
        **({"class_names": names} if frequencies and (names := _class_names(dataset)) else {}),
        **({"given": shapes} if shapes else {}),
        **_of_experiment(experiment, started),
        "metrics": {},
        "evaluation": {},
        "wall_seconds": 0.0,
        "provenance": {**_provenance(), **origins.fields},
        **more,
    }
    operative = config.render(recipe, defaults=True)
    return create_run(folder, config=config.render(recipe), operative=operative, info=info, fill=fill)


def _class_names(dataset: Any) -> list[str]:
    """The names of a dataset's classes as texts that JSON can hold; none unless each class has one."""
    names = [str(name).encode(errors="backslashreplace").decode() for name in getattr(dataset, "class_names", ())]
    return names if len(names) == dataset.classes else []


def _of_experiment(experiment: Experiment, started: Mapping[str, Any] | None) -> dict[str, Any]:
    """The fields of run.json that a resumed run has anew."""
    return {
        "replicas": experiment.replicas,
        "strategy": type(experiment.strategy).__name__,
        **declared_figures(experiment.component_names("evaluators"), experiment.evaluators, experiment.dataset),
        **({"started_from": started} if started else {}),
    }


def _provenance() -> dict[str, Any]:
    devices = [device.name for device in tf.config.list_logical_devices()]
    return provenance(sys.argv, devices, plugins.current().rows)


def _from_the_start(run: RunDirectory) -> str:
    which = "no sound checkpoint" if run.info.get("checkpointed") else "no checkpoint yet"
    count = sum(1 for _ in rows(run.path / METRICS, ()))
    are = "is" if count == 1 else "are"
    discarded = f", and its {counted(count, 'row')} of metrics {are} discarded" if count else ""
    return f"{line(run.path)} has {which}: training begins again from step 0{discarded}."
