"""`ganlab.Run`, a run with all its operations, `ganlab.train`, which makes one, and `ganlab.load`."""

from __future__ import annotations

import contextlib
import importlib
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ganlab.errors import ConfigError, MissingDependencyError, RunCompletedError, RunError
from ganlab.lazy import no_greetings, quiet_native_stderr, require
from ganlab.plugins.manager import use_plugin_file
from ganlab.runs.addresses import at_address
from ganlab.runs.directory import RunDirectory, new_run_path
from ganlab.runs.plugin_file import take_up
from ganlab.support import several
from ganlab.support.collector import collect_rarely
from ganlab.telemetry.console import in_notebook

if TYPE_CHECKING:
    import keras
    import numpy as np
    from ganlab_certify import Certified, CertifiedDistance
    from ganlab_time_travel import Onset, Replayed

    from ganlab.composition import Experiment
    from ganlab.interfaces import Evaluator
    from ganlab.plugins.recipes import Recipe
    from ganlab.training.loading import Step

_OF_TRAINING = [
    "ganlab.composition",
    "ganlab.config",
    "ganlab.lipschitz",
    "ganlab.pictures",
    "ganlab.runs.experiment_source",
    "ganlab.training.start",
    "ganlab.transport",
    "contourpy",
    "matplotlib.backends.backend_agg",
    "matplotlib.figure",
    "rich.progress",
    "typeguard",
]


class Run(RunDirectory):
    """A run on disk, finished or not: `ganlab.Run("runs/quickstart/20260801-120000-s0-1f2e")`.

    Objects that were made in Python and not by a registered factory cannot be made again from the run's file. A run
    that `ganlab.train` returned has them; for one that was opened later, methods take `experiment`, the experiment that
    it was trained with, and refuse another one. So does `given`, for functions that take a run.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, experiment: Experiment | None = None, keeps: object = None
    ) -> None:
        """Takes a run's directory, or its address: `ganlab.Run("s3://bucket/runs/ring/lazy")`.

        A run at an address is read from a folder of this machine, `path`, which follows its mirror while the object
        lives and is not to be written to.

        Args:
            path: The directory, or the address.
            experiment: The experiment that it was trained with.
            keeps: An object to keep alive as long as the run.

        Raises:
            RunError: The directory is not a run, or there is none at the address, or it cannot be read.
        """
        if (opened := at_address(path, "read")) is not None:  # it ends with the last object that keeps it
            keeps, path = opened, opened.__enter__()[0]
        super().__init__(path, experiment=experiment, keeps=keeps)

    def recipe(self, params: Sequence[str] = (), *, only: Sequence[str] | None = None) -> Recipe:
        """The experiment that config.gin describes; nothing is built yet.

        If the run used a plugin file, and the working directory has one of that name and content, it is used.

        Args:
            params: Overrides, as `--param` takes them.
            only: The settings to read; None for all.

        Raises:
            ConfigError: The file does not fit the plugins in use, or an override is wrong.
            PluginError: The run used a plugin file that must be named; the message names it.
        """
        take_up(self.path)
        return super().recipe(params, only=only)

    def generator(self, *, experiment: Experiment | None = None) -> keras.Model:
        """The trained generator, or its average if the run keeps one: `(n, latent_dim) -> (n, *sample_shape)`.

        A conditional one takes `[latents, labels]`, the labels as the architecture's generator takes them.

        Args:
            experiment: The run's experiment, if its architecture was made in Python.

        Raises:
            RunError: There is no checkpoint yet, or it does not fit the recorded experiment.
        """
        from ganlab.training import load_generator

        return load_generator(self.given(experiment))

    def network(self, name: str, *, experiment: Experiment | None = None) -> keras.Model:
        """A trained network: the critic, or one that the architecture has beside it, for example an encoder.

        Its weights are those that its constraints make of the trained ones (`reparameterize`). What they do to scores
        (`transform`) is left out.

        Args:
            name: "critic" or its name. Of one of the generator's side it is the average if the run keeps one.
            experiment: The run's experiment, if its architecture was made in Python.

        Raises:
            ConfigError: There is no such network.
            RunError: There is no checkpoint yet, or it does not fit the recorded experiment.
        """
        from ganlab.training import load_network

        return load_network(self.given(experiment), name)

    def evaluate(
        self,
        evaluators: str | Evaluator | Sequence[str | Evaluator] = (),
        *,
        checkpoint: Step = None,
        experiment: Experiment | None = None,
    ) -> dict[str, float]:
        """Measures the generator of a checkpoint, on one device and without its strategy; writes nothing.

        Args:
            evaluators: Evaluators, or names such as `kid`, configured by the run's file; empty for the experiment's
                own evaluators.
            checkpoint: The step of a checkpoint, "best" by `experiment.keep_best`, or None for the newest.
            experiment: The run's experiment, if parts of it were made in Python.

        Returns:
            The figures by `<evaluator>/<figure>`, as in run.json.

        Raises:
            RunError: The checkpoint is missing, or does not fit the recorded experiment.
            ConfigError: The experiment has no evaluators and none are given, or an argument is not an evaluator.
        """
        from ganlab.training import evaluate

        return evaluate(self.given(experiment), evaluators, checkpoint=checkpoint)

    def sample(
        self,
        n: int = 64,
        *,
        seed: int | None = None,
        truncation: float | None = None,
        labels: int | Sequence[int] | None = None,
        checkpoint: Step = None,
        experiment: Experiment | None = None,
    ) -> np.ndarray:
        """Samples of a checkpoint's generator, or of its average if the run keeps one: `(n, *sample_shape)`.

        Args:
            n: How many.
            seed: Their seed; None for the run's own, as in its pictures.
            truncation: Redraws every entry of a latent vector that is larger, by absolute value; None for none.
            labels: The classes of a conditional generator's samples, used in turn; None for classes as in the data.
            checkpoint: The step of a checkpoint, "best" by `experiment.keep_best`, or None for the newest.
            experiment: The run's experiment, if its architecture was made in Python.

        Raises:
            GanlabError: As of `ganlab.exporting.draw`.
        """
        run, draw = self.given(experiment), _application("ganlab_export").draw
        drawn = draw(run, n, seed=seed, truncation=truncation, labels=labels, checkpoint=checkpoint)
        return cast("np.ndarray", drawn.samples)

    def export(
        self,
        folder: str | os.PathLike[str],
        *,
        format: str = "saved_model",
        checkpoint: Step = None,
        experiment: Experiment | None = None,
    ) -> dict[str, Any]:
        """Writes a checkpoint's generator for use without ganlab, as `ganlab export` does.

        Args:
            folder: The folder to write; it must be empty or not exist.
            format: "saved_model", "keras" or "onnx".
            checkpoint: The step of a checkpoint, "best" by `experiment.keep_best`, or None for the newest.
            experiment: The run's experiment, if its architecture was made in Python.

        Returns:
            The content of export.json.

        Raises:
            GanlabError: As of `ganlab.exporting.export`.
        """
        export = _application("ganlab_export").export
        return cast("dict[str, Any]", export(self.given(experiment), folder, format=format, checkpoint=checkpoint))

    def _repr_html_(self) -> str:
        """The status, the last metrics and the newest sample grid, for notebooks; read from the disk."""
        return cast("str", _application("ganlab_runs.cell").as_html(self))

    def certify(
        self,
        *,
        checkpoint: Step = None,
        seconds: float = 60.0,
        rungs: str | Sequence[str] | None = None,
        experiment: Experiment | None = None,
    ) -> Certified:
        """Bounds the Lipschitz constant of a checkpoint's critic, on one device and without its strategy.

        Args:
            checkpoint: The step of a checkpoint, "best" by `experiment.keep_best`, or None for the newest.
            seconds: How long each slow certificate, and the attack, may take; what they have by then is sound.
            rungs: Which certificates to compute, of those that `ganlab.lipschitz.ladder` lists; None for all.
            experiment: The run's experiment, if parts of it were made in Python.

        Returns:
            `lower`, `upper`, and all certificates as `rungs`.

        Raises:
            RunError: The checkpoint is missing, or does not fit the recorded experiment.
            ConfigError: A certificate is unknown.
        """
        asked = None if rungs is None else several.texts(rungs, "rungs")
        application = _application("ganlab_certify")
        return application.certify(self.given(experiment), checkpoint=checkpoint, seconds=seconds, rungs=asked)

    def certify_distance(
        self,
        *,
        checkpoint: Step = None,
        samples: int = 16_384,
        confidence: float = 0.95,
        box: tuple[float, float] | None = None,
        seconds: float = 60.0,
        experiment: Experiment | None = None,
    ) -> CertifiedDistance:
        """An interval that holds the Wasserstein-1 distance between the data and a checkpoint's generator.

        Args:
            checkpoint: The step of a checkpoint, "best" by `experiment.keep_best`, or None for the newest.
            samples: How many held-out samples of each kind; as many more are used for choices.
            confidence: The probability that the interval holds the distance.
            box: The least and the largest value that any number of an example or a sample takes; None for [-1, 1] for
                images, and for vectors the box of the samples, a quarter of its sides wider on each.
            seconds: How long each slow certificate of the critic may take.
            experiment: The run's experiment, if parts of it were made in Python.

        Returns:
            The interval, what its ends rest on, and what it assumes.

        Raises:
            RunError: The checkpoint is missing, or does not fit the recorded experiment; or a sample lies outside the
                box.
            ConfigError: A value is out of its range.
        """
        application, run = _application("ganlab_certify"), self.given(experiment)
        return application.certify_distance(
            run, checkpoint=checkpoint, samples=samples, confidence=confidence, box=box, seconds=seconds
        )

    def replay(
        self, step: int, diagnostics: str | Sequence[str] = (), *, experiment: Experiment | None = None
    ) -> Replayed:
        """Trains again up to a step, from the nearest checkpoint before, and writes nothing.

        Args:
            step: Generator updates done, from 1 to those that the run has done.
            diagnostics: Names of diagnostics to look besides, such as `slopes`, with the settings of the run's file.
            experiment: The run's experiment, if parts of it were made in Python.

        Returns:
            The step's row, the one that was logged, and the tags that differ.

        Raises:
            RunError: The step cannot be trained again.
            ConfigError: A diagnostic is unknown.
        """
        step, names = several.whole_number(step, "step"), several.texts(diagnostics, "diagnostics")
        replay = _application("ganlab_time_travel").replay
        return replay(self.given(experiment), step=step, diagnostics=names, say=_warn)

    def fork(
        self,
        run_dir: str | os.PathLike[str] | None = None,
        *,
        at: int,
        params: str | Sequence[str] = (),
        console: bool = False,
        experiment: Experiment | None = None,
    ) -> Run:
        """Trains a twin from one of the run's steps on, with the same examples and noise and other settings.

        Args:
            run_dir: The twin's directory, which must not exist; None for a new one beside the run's, or in `runs` if
                the run is at an address.
            at: The step, from 1.
            params: Settings of the twin, as `--param` takes them; none for the same again.
            console: Whether to show progress on the terminal.
            experiment: The run's experiment, not the twin's, if parts of it were made in Python; the twin has them too,
                unless `params` sets them anew.

        Returns:
            The twin, trained; its `info["forked_from"]` has this run's path and the step.

        Raises:
            RunError: The step cannot be trained again, or the directory exists.
            ConfigError: A setting is wrong, or leaves nothing to train.
            TrainingFailedError: As of `ganlab.train`.
        """
        run, at, settings = self.given(experiment), several.whole_number(at, "at"), several.texts(params, "params")
        if run_dir is None:
            beside = run.path.absolute().parent
            root = beside.parent if run._keeps is None else Path("runs")
            run_dir = new_run_path(root, beside.name, int(run.recipe(settings).arguments.get("seed", 0)))
        twin, application = several.path(run_dir, "run_dir"), _application("ganlab_time_travel")
        return cast(Run, application.fork(run, twin, at=at, params=settings, console=console, say=_warn))

    def bisect(self, condition: str, *, experiment: Experiment | None = None) -> Onset | None:
        """Finds the first step at which a condition on a metric holds, by training the steps around it again.

        Args:
            condition: For example `constraints/gradient_penalty/slope > 5`, or `critic/loss nonfinite`.
            experiment: The run's experiment, if parts of it were made in Python.

        Returns:
            The step, and the metrics there and before; None if the condition holds in no logged row.

        Raises:
            ConfigError: It is not a condition.
            RunError: The run has no such metric, or the steps cannot be trained again.
        """
        application = _application("ganlab_time_travel")
        return application.bisect(self.given(experiment), application.parse_condition(str(condition)), _warn)


def _application(name: str) -> Any:
    """An application, imported when it is used; the core imports none of them."""
    return importlib.import_module(name)


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=2)


_Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def train(
    experiment: Experiment | _Files,
    run_dir: str | os.PathLike[str] | None = None,
    *,
    params: str | Sequence[str] = (),
    resume: bool = False,
    resume_or_start: bool = False,
    allow_changes: bool = False,
    console: bool | None = None,
    profile: str = "",
    **settings: Any,
) -> Run:
    """Trains an experiment: `ganlab.train("quickstart", steps=100)`.

    Args:
        experiment: The experiment to train; or an experiment file, by path or by the name of a shipped one; or several,
            of which later override earlier. A `ganlab_plugins.py` beside the first is used.
        run_dir: The run's directory: a new one, or with `resume` that of an earlier `train`; None for a new one in
            `runs`, which has the file's name and the time.
        params: Overrides of experiment files, each `NAME=VALUE`.
        resume: Whether to resume from the newest sound checkpoint of `run_dir`.
        resume_or_start: Whether to resume `run_dir` if it exists, and to start it otherwise; a complete run stays.
        allow_changes: Whether to resume even if the experiment, its code or its data have changed.
        console: Whether to show progress; None for in notebooks alone.
        profile: The iterations that TensorFlow's profiler traces into the run's folder, `20..25`; empty for none.
        **settings: Settings of the experiment in place of its own: `steps=100`, `constraints=[R1()]`.

    Returns:
        The run, which keeps the experiment; its `info["status"]` is `completed`, or `interrupted` after SIGINT, SIGTERM
        or SIGHUP, with a checkpoint saved.
        On a worker that is not the chief, the run is temporary and is deleted with the object.

    Raises:
        GanlabError: The experiment cannot be trained, or the directory cannot be used; no new directory is left behind.
            It is a `RunInUseError` while another process trains the run.
        TrainingFailedError: Training began and could not continue; `info["status"]` is `diverged` if a metric is not
            finite, and `failed` otherwise.
    """
    from ganlab.composition import Experiment
    from ganlab.training import start

    if (resume or resume_or_start) and run_dir is None:
        raise ConfigError("resume and resume_or_start need run_dir, the directory of the run.")
    folder, stem = None if run_dir is None else several.path(run_dir, "run_dir"), "python"
    if not isinstance(experiment, Experiment):
        files = several.paths(experiment, "experiment", _RULE)
        stem = Path(files[0]).stem if files else stem
        experiment = load(files, params=params, **settings)
    elif params:
        raise ConfigError(
            f"params = {params!r:.80} are for experiment files: give them to the parts of the experiment."
        )
    elif settings:
        experiment = experiment.replace(**settings)
    folder = folder or new_run_path("runs", stem, experiment.seed)
    shown = in_notebook() if console is None else console
    options: dict[str, Any] = {"allow_changes": allow_changes, "console": shown, "profile": profile}
    while True:
        exists = resume or (resume_or_start and os.path.lexists(folder))
        try:
            return cast(Run, start.train(experiment, folder, resume=exists, as_run=Run, **options))
        except RunError as error:
            if resume_or_start and isinstance(error, RunCompletedError):
                return Run(folder, experiment=experiment)
            # Of two that start at once, the second finds the folder of the first.
            if exists or not (resume_or_start and os.path.lexists(folder)):
                raise


_RULE = "an experiment, as ganlab.experiment(...) makes it, or an experiment file, or a list of them"


def load(gin: _Files, *, params: str | Sequence[str] = (), **settings: Any) -> Experiment:
    """The experiment of files, by path or name: `ganlab.load("quickstart")`.

    The plugins in use stay, apart from the `ganlab_plugins.py` beside the first file, which is used.

    Args:
        gin: An experiment file, or several, of which later override earlier.
        params: Overrides of them, each `NAME=VALUE`, for parameters of components.
        **settings: Settings of the experiment, in place of those of the files. `experiment.replace` changes more.

    Raises:
        GanlabError: The files have a mistake, or a part cannot be made.
    """
    from ganlab.composition import compose
    from ganlab.config import find_gin_file
    from ganlab.plugins.discovery import plugin_file_in
    from ganlab.runs.experiment_source import read_experiment

    files = several.paths(gin, "experiment", _RULE)
    if not files:
        raise ConfigError(f"experiment = {gin!r} must be {_RULE}.")
    beside = plugin_file_in(find_gin_file(files[0]).parent)
    if beside is not None:
        use_plugin_file(beside)
    recipe = read_experiment(files, several.texts(params, "params"))
    return compose(replace(recipe, arguments={**recipe.arguments, **settings}))


def preload() -> None:
    """Imports everything that training needs, without startup messages, and touches no device.

    Python's garbage collector runs less often from then on.

    For launchers: a process that has done only this can be forked, and its children train at once.

    Raises:
        MissingDependencyError: TensorFlow or Keras is not installed.
        ConfigError: Keras is set to another backend.
    """
    collect_rarely()
    no_greetings()
    with quiet_native_stderr():
        require("tensorflow")
    require("keras")
    for name in _OF_TRAINING:
        importlib.import_module(name)
    from ganlab.transport.exact import pot

    with contextlib.suppress(MissingDependencyError):  # evaluators can do without
        pot()
