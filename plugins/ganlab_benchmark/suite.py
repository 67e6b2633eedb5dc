"""A suite: the tasks of a benchmark, read from a TOML file and checked whole before anything starts."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ganlab.commands import find_gin_file, shipped_folder
from ganlab.errors import ConfigError, RunError, nearest
from ganlab.files import line, local, open_inside, schema
from ganlab_benchmark.suite_schema import CERTIFICATE, COST, SENSITIVITY, SUITE, TRAINING, literal

# Stands for the constraint's name in the settings of a suite.
PLACEHOLDER = "{constraint}"
_FOLDER = "benchmark"
_LARGEST = 1 << 20
# What a task of a kind has unless its table says otherwise, beside the defaults of `Task`.
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {COST: {"rounds": 7, "seconds": 0.4}, CERTIFICATE: {"seconds": 5.0}}


@dataclass(frozen=True)
class Figure:
    """One figure of a task.

    Attributes:
        name: Its name in results.
        better: `higher` or `lower`.
        label: Its name in tables.
        about: Its definition, in a sentence.
        metric: Its name in metrics.jsonl; empty for a derived task.
        absolute: Whether its sign is dropped.
        only: The reports that have it; none for all.
    """

    name: str
    better: str
    label: str
    about: str = ""
    metric: str = ""
    absolute: bool = False
    only: Sequence[str] = ()


@dataclass(frozen=True)
class Report:
    """One of the problems that a task reports on.

    Attributes:
        name: Its name.
        settings: Its settings.
    """

    name: str
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Tune:
    """How the settings of a task are chosen.

    Attributes:
        figure: The figure that decides.
        seeds: The seeds of its trials.
        steps: Updates of the unconstrained critic.
        settings: The settings of its problem, which is not one of those reported.
        grid: Values of settings.
        scale: Factors of the defaults of settings; those that a constraint lacks are left out.
    """

    figure: str
    seeds: Sequence[int]
    steps: int
    settings: Mapping[str, str]
    grid: Mapping[str, Sequence[str]]
    scale: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Task:
    """One task of a suite.

    Attributes:
        name: Its name in results.
        kind: One of `KINDS`.
        title: Its heading.
        about: What it measures, in a sentence.
        figures: Its figures, the first of which leads.
        experiment: The experiment file; None for a derived task.
        settings: Settings of all its trials.
        files: The settings that name files which it needs, and where each is from.
        steps: Generator updates of a trial, if an update cost as much as without a constraint.
        seeds: The seeds of its reports.
        split: Whether each report has figures of its own; otherwise they are pooled.
        tune: How its settings are chosen, or None.
        tuned_by: The task whose chosen settings it uses; empty for its own or none.
        reports: The problems.
        of: The task that a derived one looks at.
        within: The part of the best figure that counts as good, for `sensitivity`.
        seconds: The time for one certificate, or for one turn of a cost measurement.
        rungs: The certificates.
        rounds: Rounds of a cost measurement.
    """

    name: str
    kind: str
    title: str
    about: str
    figures: Mapping[str, Figure]
    experiment: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    steps: int = 0
    seeds: Sequence[int] = ()
    split: bool = False
    tune: Tune | None = None
    tuned_by: str = ""
    reports: Sequence[Report] = ()
    of: str = ""
    within: float = 0.9
    seconds: float = 1.0
    rungs: Sequence[str] = ()
    rounds: int = 1


@dataclass(frozen=True)
class Suite:
    """A declared set of tasks.

    Attributes:
        name: The file's name, without its ending.
        path: The file.
        title: Its title.
        about: What it is for.
        tasks: The tasks by name, in order.
    """

    name: str
    path: Path
    title: str
    about: str
    tasks: Mapping[str, Task]

    @property
    def cost(self) -> Task:
        """The task that measures the cost."""
        return next(task for task in self.tasks.values() if task.kind == COST)

    @property
    def training(self) -> list[Task]:
        """The tasks that train."""
        return [task for task in self.tasks.values() if task.kind == TRAINING]


def shipped_suites() -> dict[str, Path]:
    """The suites that come with ganlab, by name."""
    folder = shipped_folder()
    return {path.stem: path for path in sorted((folder / _FOLDER).glob("*.toml"))} if folder else {}


def find_suite(name: str | Path) -> Path:
    """The file of a suite.

    Args:
        name: A path, or the name of a shipped suite.

    Raises:
        ConfigError: There is no such suite.
    """
    shipped = shipped_suites()
    if str(name) in shipped:
        return shipped[str(name)]
    path = local(name, "suite")
    if path.is_file():
        return path
    raise ConfigError(
        f"Suite {line(name)!r} not found: it must be a file, or one of {', '.join(shipped)}."
        f"{nearest(str(name), shipped)}"
    )


def read_suite(path: Path) -> Suite:
    """Reads a suite and checks all of it, except for the experiments themselves.

    Raises:
        ConfigError: Something in it is wrong.
    """
    try:
        real = path.resolve()
        with open_inside(real.parent, real.name) as file:
            data = file.read(_LARGEST + 1)
        text = data[:_LARGEST].decode() if len(data) <= _LARGEST else ""
    except (RunError, OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Suite {line(path)} cannot be read: {line(error)}. Give a TOML file.") from None
    if len(data) > _LARGEST:
        raise ConfigError(f"Suite {line(path)} is larger than 1 MiB: a suite is a short TOML file. Give another.")
    try:
        content = tomllib.loads(text)
        SUITE.check(content)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{line(path)} is not TOML: {line(error)}. Correct that line.") from None
    except schema.InvalidError as error:
        raise ConfigError(f"{line(path)}: {error}.") from None
    tasks = {name: _task(name, task, path) for name, task in content.get("tasks", {}).items()}
    suite = Suite(path.stem, path, content.get("title", path.stem), content.get("about", ""), tasks)
    _check(suite)
    return suite


def _task(name: str, content: Mapping[str, Any], path: Path) -> Task:
    kind = content.get("kind", TRAINING)
    values = {"kind": kind, "title": name, "about": "", "figures": {}, **_DEFAULTS.get(kind, {}), **content}
    values["figures"] = {key: Figure(key, **{"label": key, **each}) for key, each in values["figures"].items()}
    if "experiment" in values:
        values["experiment"] = _experiment(values["experiment"], path, f"tasks.{name}.experiment")
    if "settings" in values:
        values["settings"] = _settings(values["settings"])
    if "seconds" in values:
        values["seconds"] = float(values["seconds"])
    if "tune" in values:
        values["tune"] = _tune({"steps": values["steps"], **values["tune"]})
    reports = values.pop("report", ())
    return Task(name, **values, reports=[Report(one["name"], _settings(one.get("settings", {}))) for one in reports])


def _tune(content: Mapping[str, Any]) -> Tune:
    lists = {key: {name.strip(): values for name, values in content.get(key, {}).items()} for key in ("grid", "scale")}
    return Tune(
        content["figure"],
        content["seeds"],
        content["steps"],
        _settings(content.get("settings", {})),
        {name: list(map(literal, values)) for name, values in lists["grid"].items()},
        {name: list(map(float, values)) for name, values in lists["scale"].items()},
    )


def _settings(content: Mapping[str, Any]) -> dict[str, str]:
    return {name.strip(): literal(value) for name, value in content.items()}


def _experiment(name: str, path: Path, key: str) -> Path:
    beside = path.parent / name
    if beside.is_file():
        return beside
    try:
        return find_gin_file(name)
    except ConfigError as error:
        raise ConfigError(
            f"{line(path)}: {key} = {line(repr(name))[:80]} must be an experiment file beside the suite or a shipped "
            f"one. {error}"
        ) from None


def _check(suite: Suite) -> None:
    """Checks what concerns several tasks."""
    where = line(suite.path)
    costs = [task for task in suite.tasks.values() if task.kind == COST]
    if len(costs) != 1:
        raise ConfigError(
            f"{where}: {len(costs)} tasks of kind 'cost'; there must be exactly one, because all budgets follow from "
            "it. Add or remove one."
        )
    if not suite.training:
        raise ConfigError(f"{where}: no task trains anything. Add a task of kind 'training'.")
    for task in suite.tasks.values():
        at = f"{where}: tasks.{line(task.name)}"
        if task.kind == TRAINING:
            _check_training(suite, task, at)
        elif len(task.figures) != 1:
            raise ConfigError(
                f"{at}.figures = {line(list(task.figures))} must have exactly one figure, because a task of kind "
                f"{task.kind!r} has one. Add or remove some."
            )
        elif task.kind != COST:
            _check_derived(suite, task, at)


def _check_training(suite: Suite, task: Task, at: str) -> None:
    if not task.figures:
        raise ConfigError(f"{at} has no figures. Add at least one: [tasks.{line(task.name)}.figures.NAME].")
    if not task.reports:
        raise ConfigError(f"{at} reports on nothing. Add at least one [[tasks.{line(task.name)}.report]].")
    names = [report.name for report in task.reports]
    if len(set(names)) < len(names):
        raise ConfigError(f"{at}.report: two have the name {line(max(names, key=names.count))!r}. Rename one.")
    for figure in task.figures.values():
        for name in figure.only:
            if name not in names:
                raise ConfigError(
                    f"{at}.figures.{figure.name}.only: {line(name)!r} must be the name of a report of this task."
                    f"{nearest(name, names)}"
                )
    if task.tune is not None and task.tuned_by:
        raise ConfigError(f"{at} has both 'tune' and 'tuned_by'; there can be one of them. Remove the other.")
    if task.tuned_by and (task.tuned_by not in suite.tasks or suite.tasks[task.tuned_by].tune is None):
        tuned = [other.name for other in suite.training if other.tune is not None]
        raise ConfigError(
            f"{at}.tuned_by = {line(task.tuned_by)!r} must be the name of a task that has 'tune'."
            f"{nearest(task.tuned_by, tuned)}"
        )
    if task.tune is None:
        return
    if task.tune.figure not in task.figures:
        raise ConfigError(
            f"{at}.tune.figure = {line(task.tune.figure)!r} must be the name of a figure of this task."
            f"{nearest(task.tune.figure, task.figures)}"
        )
    for report in task.reports:
        if {**task.settings, **report.settings} == {**task.settings, **task.tune.settings}:
            raise ConfigError(
                f"{at}.tune.settings are those of the report {line(report.name)!r}: settings must be chosen on other "
                "data than those reported. Change, for example, a seed of the data."
            )


def _check_derived(suite: Suite, task: Task, at: str) -> None:
    of = suite.tasks.get(task.of)
    if of is None or of.kind != TRAINING or (task.kind == SENSITIVITY and of.tune is None):
        rule = "that has 'tune'" if task.kind == SENSITIVITY else "that trains"
        raise ConfigError(
            f"{at}.of = {line(task.of)!r} must be the name of a task {rule}."
            f"{nearest(task.of, [other.name for other in suite.training])}"
        )
