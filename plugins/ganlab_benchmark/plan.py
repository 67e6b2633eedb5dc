"""The plan of a benchmark: the experiments of each constraint in each task, checked before the first trial starts."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ganlab_sweep import Configuration, Configurations

from ganlab.commands import takes_fractions
from ganlab.errors import ConfigError, GanlabError
from ganlab_benchmark.contestants import Contestant
from ganlab_benchmark.suite import PLACEHOLDER, Suite, Task

# Parts of a suite that describe it and change no number.
_WORDS = ("title", "about", "label", "path", "text", "name", "files")


@dataclass(frozen=True)
class Plan:
    """A benchmark before anything of it is written.

    Attributes:
        suite: The suite.
        contestants: The constraints that take part.
        refused: The reason, by constraint, why its experiments cannot be made.
        skipped: The reason, by task, why it cannot be done here.
    """

    suite: Suite
    contestants: Sequence[Contestant]
    refused: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def training(self) -> list[Task]:
        """The tasks that train here."""
        return [task for task in self.suite.training if task.name not in self.skipped]


def planned(suite: Suite, contestants: Sequence[Contestant]) -> Plan:
    """Reads and checks every experiment of a benchmark.

    Args:
        suite: The suite.
        contestants: The constraints that take part.

    Returns:
        The plan. A constraint whose experiments are invalid is refused in it.

    Raises:
        GanlabError: The suite's experiments are invalid without any constraint, or those of every constraint are.
    """
    for task in (suite.cost, *suite.training):
        _text(task, _plain(task.settings))  # an experiment, whatever the constraints
    refused: dict[str, str] = {}
    first: GanlabError | None = None
    for contestant in contestants:
        try:
            for task in suite.training:
                every = [*tuning(task, contestant, 1), *reports(task, contestant, 1, {})]
                configurations(task, every)
            plain_and_constrained(suite.cost, contestant)
        except GanlabError as error:
            refused[contestant.name], first = str(error), first or error
    if first is not None and len(refused) == len(contestants):
        raise first
    return Plan(suite, contestants, refused, _skipped(suite))


def tuning(task: Task, contestant: Contestant, ratio: float) -> list[tuple[str, dict[str, str]]]:
    """The trials that choose a task's settings.

    Args:
        task: The task.
        contestant: The constraint.
        ratio: What an update costs, relative to no constraint.

    Returns:
        Names and settings; none if nothing is tuned, or there is only one setting.
    """
    combinations = choices(task, contestant)
    if task.tune is None or len(combinations) < 2:
        return []
    steps = steps_of(task.tune.steps, ratio)
    return [
        (f"setting-{number + 1}", _settings(contestant, steps, task.settings, task.tune.settings, choice))
        for number, choice in enumerate(combinations)
    ]


def choices(task: Task, contestant: Contestant) -> list[dict[str, str]]:
    """Every combination of the settings that are tuned, in the order of the suite.

    Factors apply to the default of a parameter that the constraint has, if that is a number and may be a fraction;
    the axes of other parameters are left out.
    """
    if task.tune is None:
        return [{}]
    axes = {_filled(name, contestant): list(values) for name, values in task.tune.grid.items()}
    for name, factors in task.tune.scale.items():
        setting = _filled(name, contestant)
        default = _default(setting, contestant)
        if default and takes_fractions(setting) is not False:
            axes[setting] = [f"{default * factor:.6g}" for factor in factors]
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def reports(
    task: Task, contestant: Contestant, ratio: float, choice: Mapping[str, str]
) -> list[tuple[str, dict[str, str]]]:
    """The trials that are reported: names and settings.

    Args:
        task: The task.
        contestant: The constraint.
        ratio: What an update costs, relative to no constraint.
        choice: The settings that were chosen.
    """
    steps = steps_of(task.steps, ratio)
    return [
        (folder_of(number, report.name), _settings(contestant, steps, task.settings, report.settings, choice))
        for number, report in enumerate(task.reports)
    ]


def folder_of(number: int, name: str) -> str:
    """The name of the folder of a report."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40]
    return f"{number + 1}-{slug}" if slug else str(number + 1)


def steps_of(steps: int, ratio: float) -> int:
    """The updates that a constraint gets for the time of `steps` updates without one."""
    return max(1, round(steps / max(1.0, ratio)))


def rounded(ratio: float) -> float:
    """A measured cost as it decides budgets: to one decimal, and at least 1."""
    return max(1.0, round(ratio, 1))


def configurations(task: Task, every: Iterable[tuple[str, Mapping[str, str]]]) -> list[Configuration]:
    """The experiments of trials.

    Raises:
        GanlabError: One is invalid, or a setting has no effect.
    """
    trained = []
    for name, settings in every:
        one = _read(task)
        text = one.of(settings).text
        for reason in (one.unused or {}).values():
            raise ConfigError(f"tasks.{task.name}: {reason}")
        trained.append(Configuration(name, dict(settings), text))
    return trained


def plain_and_constrained(task: Task, contestant: Contestant) -> tuple[str, str]:
    """The two experiments whose costs are compared, as experiment files have them.

    Raises:
        GanlabError: One is invalid.
    """
    constrained = {**task.settings, "experiment.constraints": _constraints(contestant)}
    return _text(task, task.settings), _text(task, constrained)


def fingerprint(suite: Suite) -> str:
    """A hash of all that decides the suite's numbers: its tasks and their experiments, without words and layout.

    Raises:
        GanlabError: An experiment is invalid.
    """
    content = {
        task.name: {**_without_words(asdict(task)), "experiment": _text(task, {}) if task.experiment else ""}
        for task in suite.tasks.values()
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def budget(suite: Suite) -> dict[str, dict[str, Any]]:
    """The size of each training task: updates, seeds, reports."""
    return {
        task.name: {
            "steps": task.steps,
            "seeds": list(task.seeds),
            "reports": [report.name for report in task.reports],
            "tuning_steps": task.tune.steps if task.tune else None,
            "tuning_seeds": list(task.tune.seeds) if task.tune else None,
        }
        for task in suite.training
    }


def trials_of(plan: Plan, contestant: Contestant) -> int:
    """The number of trials that a constraint trains."""
    return sum(
        len(task.reports) * len(task.seeds)
        + (len(tuning(task, contestant, 1)) * len(task.tune.seeds) if task.tune else 0)
        for task in plan.training
    )


def _plain(settings: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if PLACEHOLDER not in name + value}


def _skipped(suite: Suite) -> dict[str, str]:
    """Why tasks are skipped: a file is not there, for the task itself or for one that it cannot do without."""
    reasons = {task.name: reason for task in (suite.cost, *suite.training) if (reason := _missing(task))}
    for task in (*suite.training, *suite.tasks.values()):
        for other in (task.tuned_by, task.of, suite.cost.name):
            if other in reasons:
                reasons.setdefault(task.name, reasons[other])
    if all(task.name in reasons for task in suite.training):  # the cost is of no use then
        reasons = dict.fromkeys(suite.tasks, next(iter(reasons.values()))) | reasons
    return reasons


def _missing(task: Task) -> str:
    """The files of a task that are not there, and where they are from; empty if all are."""
    absent, problems = {}, [one.settings for one in (task.tune, *task.reports) if one] or [{}]
    for settings, (name, origin) in itertools.product(problems, task.files.items()):
        value = rf"(?m)^{re.escape(name)} = (['\"])(.+)\1$"
        found = re.search(value, _text(task, _plain({**task.settings, **settings})))
        if found is None:
            raise ConfigError(f"tasks.{task.name}.files: {name!r} must be a setting of its experiment, of a file.")
        if not Path(found[2]).expanduser().is_file():
            absent[found[2]] = origin
    where = f"Get them from {', '.join(dict.fromkeys(absent.values()))}"
    return f"Not found from {Path.cwd()}: {', '.join(absent)}. {where}" if absent else ""


def _text(task: Task, settings: Mapping[str, str]) -> str:
    return _read(task).of(settings).text


def _read(task: Task) -> Configurations:
    assert task.experiment is not None
    return Configurations([task.experiment], (), (), ())


def _settings(contestant: Contestant, steps: int, *tables: Mapping[str, str]) -> dict[str, str]:
    merged = {name: value for table in tables for name, value in table.items()}
    filled = {_filled(name, contestant): _filled(value, contestant) for name, value in merged.items()}
    return {**filled, "experiment.constraints": _constraints(contestant), "experiment.steps": str(steps)}


def _constraints(contestant: Contestant) -> str:
    return f"[@constraints.{contestant.name}()]"


def _filled(text: str, contestant: Contestant) -> str:
    return text.replace(PLACEHOLDER, contestant.name)


def _default(setting: str, contestant: Contestant) -> float | None:
    """The default of a setting of the constraint's own; None for any other setting."""
    component, _, parameter = setting.rpartition(".")
    return contestant.defaults.get(parameter) if component == f"constraints.{contestant.name}" else None


def _without_words(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_words(item) for key, item in value.items() if key not in _WORDS}
    return [_without_words(item) for item in value] if isinstance(value, (list, tuple)) else value
