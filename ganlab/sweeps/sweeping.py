"""`ganlab.sweep`: plans a sweep, creates its folder and runs its trials; and the steps of it, for the command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ganlab.config import arguments, load_variant, objects
from ganlab.config.files import find_gin_file
from ganlab.config.logged import check_logged
from ganlab.config.registry import Names
from ganlab.errors import ConfigError, RunError
from ganlab.interfaces import Launcher, Range, Search
from ganlab.plugins.manager import component, current
from ganlab.runs.experiment_source import use_plugins
from ganlab.runs.fields import new_path
from ganlab.runs.plugin_file import recorded
from ganlab.support import several
from ganlab.support.terminal import line
from ganlab.sweeps.configurations import Configuration, Configurations, check, check_used, varying
from ganlab.sweeps.engine import Engine, Screen
from ganlab.sweeps.request import Proposed, Request
from ganlab.sweeps.search_driver import SearchDriver, plan, start
from ganlab.sweeps.space import parse_seeds, parse_space
from ganlab.sweeps.store import Sweep
from ganlab.sweeps.trial import Trial, take_up
from ganlab.version import __version__


@dataclass(frozen=True)
class Plan:
    """A sweep before anything of it is written.

    Attributes:
        request: The request, with the files found and the seeds known.
        launcher: Starts its trials.
        search: Chooses its settings.
        proposals: The settings that the search proposed; none if it makes them as results come in.
        configurations: Those that differ as experiments.
        threads: Threads per trial.
    """

    request: Request
    launcher: Launcher
    search: Search
    proposals: list[Proposed]
    configurations: list[Configuration]
    threads: int


@dataclass(frozen=True)
class Swept:
    """A sweep whose trials have ended.

    Attributes:
        path: Its folder: what `ganlab.compare` takes.
        trials: The trials, each with `name`, `status`, `value` of the objective, `error` and `run`, its run directory.
    """

    path: Path
    trials: list[Trial]


def sweep(
    gin: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    params: str | Sequence[str] = (),
    grid: Mapping[str, Any] | None = None,
    ranges: Mapping[str, str] | None = None,
    seeds: int | Sequence[int] = (),
    jobs: int = 1,
    threads: int | None = None,
    timeout: float | None = None,
    launcher: str = "local",
    launcher_options: Mapping[str, Any] | None = None,
    search: str = "grid",
    search_options: Mapping[str, Any] | None = None,
    search_seed: int = 0,
    budget: int | None = None,
    objective: str | None = None,
    maximize: bool = False,
    runs: str | os.PathLike[str] = "runs",
    name: str | None = None,
    no_plugin: str | Sequence[str] = (),
    plugin_file: str | os.PathLike[str] | None = None,
) -> Swept:
    """Trains an experiment with many settings and seeds, each as a run in a process of its own.

    `ganlab sweep` on the command line, which can also resume a sweep. Ctrl-C saves the trials and raises.

    Args:
        gin: The experiment file, by path or by the name of a shipped one, or several, of which later override earlier.
        params: Overrides for all trials, each `NAME=VALUE`; one or several, as of every argument in the plural.
        grid: The values of each setting: `{"constraints.gradient_penalty.weight": [0.1, 1, 10]}`. A text that begins
            with `@` or `%` is a component or a macro, as in an experiment file; so is one inside a list.
        ranges: The range of each number, for searches such as random: `{"optimizers.adam.learning_rate":
            "1e-5..1e-2:log"}`.
        seeds: The seeds; none for the experiment's own.
        jobs: Number of trials that run at a time.
        threads: Threads per trial; by default this machine's cores divided by `jobs`.
        timeout: Time limit per trial in seconds.
        launcher: The launcher that starts trials.
        launcher_options: Its parameters.
        search: The search that chooses settings.
        search_options: Its parameters.
        search_seed: Its seed.
        budget: Number of configurations that it may try.
        objective: The metric to minimize, by its name in metrics.jsonl.
        maximize: Whether to maximize it.
        runs: Folder in which the sweep's folder is created.
        name: Name of the sweep's folder; by default the experiment file's name and the time.
        no_plugin: Names of plugins to leave out.
        plugin_file: A plugin in one file; by default the `ganlab_plugins.py` beside the first experiment file.

    Returns:
        The sweep, with all trials.

    Raises:
        GanlabError: There is a mistake in the settings, or the folder cannot be created; nothing is left then. A trial
            that fails does not raise: its status reports it.
    """
    options = {"launcher_options": launcher_options, "search_options": search_options}
    for what, mapping in {"grid": grid, "ranges": ranges, **options}.items():
        if not isinstance(mapping, Mapping | None):
            raise ConfigError(f"{what} = {mapping!r:.80} must be a dict.")
    request = Request(
        gin=several.paths(gin, "gin"),
        params=several.texts(params, "params"),
        grid=[f"{name}=[{', '.join(map(_literal, several.values(each)))}]" for name, each in (grid or {}).items()],
        range=[f"{setting}={limits}" for setting, limits in (ranges or {}).items()],
        seeds=parse_seeds(",".join(map(str, numbers))) if (numbers := several.whole_numbers(seeds, "seeds")) else [],
        jobs=jobs,
        timeout=timeout,
        launcher=launcher,
        launcher_options=[f"{option}={_literal(value)}" for option, value in (launcher_options or {}).items()],
        search=search,
        search_options=[f"{option}={_literal(value)}" for option, value in (search_options or {}).items()],
        search_seed=search_seed,
        budget=budget,
        objective=objective,
        direction="maximize" if maximize else "minimize",
        no_plugin=several.texts(no_plugin, "no_plugin"),
        plugin_file=os.fspath(several.path(plugin_file, "plugin_file")) if plugin_file is not None else None,
    )
    for what, number in (("jobs", jobs), ("threads", threads), ("budget", budget)):
        several.check_count(number, what)
    several.check_seconds(timeout, "timeout")
    planned = planned_sweep(request, threads)
    made = created(planned, free_path(several.path(runs, "runs"), name, planned))
    with made.locked():
        return Swept(made.path, run_trials(made, planned.launcher, planned.search))


def planned_sweep(request: Request, threads: int | None = None) -> Plan:
    """Plans a sweep; everything that can be wrong with it raises here.

    Args:
        request: Its description.
        threads: Threads per trial; None divides this machine's cores by the number of jobs.

    Raises:
        GanlabError: There is a mistake in it.
    """
    if not request.gin:
        raise ConfigError("Missing experiment file.")
    use_plugins(request.no_plugin, Path(request.plugin_file) if request.plugin_file else None, request.gin[0])
    # Trials read experiment files of their own, which have no plugin file beside them.
    local, content = recorded()
    found = [str(find_gin_file(name).resolve()) for name in request.gin]
    request = replace(request, gin=found, plugin_file=local, plugin_content=content)
    launcher, search = launcher_of(request), search_of(request)
    if search.needs_objective and not request.objective:
        raise ConfigError(
            f"searches.{request.search} needs an objective: name a metric, for example --objective critic/loss."
        )
    if request.direction == "maximize" and not request.objective:
        raise ConfigError("--maximize needs an objective: name a metric, for example --objective critic/loss.")
    space = parse_space(request.grid, request.range)
    if not request.seeds:
        seed = load_variant(request.gin, request.params, {}).recipe.arguments.get("seed", 0)
        request = replace(request, seeds=[seed])
    configurations = Configurations(request.gin, request.params, varying(space), known=())
    proposals: list[Proposed] = []
    if search.needs_objective:
        start(search, space, request, ())  # raises if something is wrong; it is started anew for the trials
        check(configurations, space)
    else:
        if any(isinstance(axis, Range) for axis in space.values()):
            check(Configurations(request.gin, request.params, varying(space), known=()), space)
        proposals = plan(search, space, request, configurations)
        check_used(configurations)
    if request.objective:
        check_logged(request.objective, configurations.recipes, Names(current()))
    made = [] if search.needs_objective else configurations.made
    return Plan(request, launcher, search, proposals, made, threads or max(1, cores() // request.jobs))


def free_path(runs: Path, name: str | None, planned: Plan) -> Path:
    """The path of a new sweep, after checking that it can be created.

    Args:
        runs: The folder of runs.
        name: The sweep's name; None for the experiment file's name and the time.
        planned: The sweep.

    Raises:
        RunError: Something exists there, or the name cannot name a folder.
    """
    return new_path(runs, name, "sweep", f"{Path(planned.request.gin[0]).stem}-sweep", Sweep.check_free)


def created(planned: Plan, path: Path) -> Sweep:
    """Creates the folder of a sweep, whole or not at all.

    Raises:
        RunError: It cannot be created.
    """
    info = {
        "ganlab": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "folder": str(Path.cwd()),
        "threads": planned.threads,
        "asked": planned.request.as_json(),
        "proposals": [proposal.as_json() for proposal in planned.proposals],
        "trials": {},
    }
    return Sweep.create(path, info, planned.configurations)


def run_trials(
    found: Sweep,
    launcher: Launcher,
    search: Search,
    *,
    screen: Screen | None = None,
    retry_failed: bool = False,
    stopped: Callable[[], bool] = lambda: False,
    opening: Callable[[Sequence[Trial]], None] = lambda trials: None,
) -> list[Trial]:
    """Runs the trials of a sweep that have not ended.

    Args:
        found: The sweep, which this process holds.
        launcher: Starts its trials.
        search: Chooses its settings.
        screen: Displays the trials; None for no display.
        retry_failed: Whether to retry trials that failed, diverged or timed out.
        stopped: Whether to stop: trials then save, and the sweep can be resumed.
        opening: Called with the trials before the first starts.

    Returns:
        All trials of the sweep.
    """
    for name in ("folder", "threads"):
        if name not in found.info:
            raise RunError(f"{line(found.path)}: sweep.json lacks {name}. Restore it, or start a new sweep.")
    trials = take_up(found, retry_failed=retry_failed)
    driver = _driver(found, search) if search.needs_objective else SearchDriver(found)
    found.save()
    opening(trials)
    engine = Engine(found, trials, driver, launcher, screen=screen, stopped=stopped)
    engine.run()
    return engine.trials


def launcher_of(request: Request) -> Launcher:
    """The launcher that a request names.

    Raises:
        ConfigError: There is none of that name, or an option is wrong.
    """
    options = arguments("launchers", request.launcher, request.launcher_options, "--launcher-option")
    made: Launcher = component("launchers", request.launcher)(**options)
    return made


def search_of(request: Request) -> Search:
    """The search that a request names.

    Raises:
        ConfigError: There is none of that name, or an option is wrong.
    """
    options = arguments("searches", request.search, request.search_options, "--search-option")
    made: Search = component("searches", request.search)(**options)
    return made


def _driver(found: Sweep, search: Search) -> SearchDriver:
    request = found.request
    space = parse_space(request.grid, request.range)
    known = found.configurations()
    configurations = Configurations(request.gin, request.params, varying(space), known)
    for configuration in known:
        if configurations.of(configuration.settings) is not configuration:
            raise ConfigError(
                f"{', '.join(request.gin)}: the experiment has changed since the sweep began, and "
                f"{configuration.name} would now be a different one. Restore the file, or start a new sweep."
            )
    return SearchDriver(found, search, space, configurations)


def _literal(value: Any) -> str:
    """A value as an experiment file has it.

    Raises:
        ConfigError: No file can hold it.
    """
    if isinstance(value, str):
        return value if value[:1] in ("@", "%") else repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_literal, value))}]"
    if made := objects(value):
        raise ConfigError(
            f"{next(iter(made.values()))!r:.80} was made in Python, and the trials of a sweep are processes of their "
            "own, which cannot make it again. Make it a component of a ganlab_plugins.py, and name it, for example "
            "'@constraints.mine()'."
        )
    return repr(value.item() if hasattr(value, "item") else value)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
