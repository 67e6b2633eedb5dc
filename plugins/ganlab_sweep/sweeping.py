"""`ganlab.sweep`: plans a sweep, creates its folder and runs its trials; and the steps of it, for the command line."""

from __future__ import annotations

import functools
import inspect
import os
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import ParamSpec, get_args, get_type_hints

from ganlab import Launcher, Range, Search, __version__, component
from ganlab.commands import (
    Recipe,
    arguments,
    better_direction,
    check_logged,
    find_gin_file,
    load_variant,
    setting_name,
    use_plugins,
)
from ganlab.errors import ConfigError, RunError
from ganlab.files import line
from ganlab.runs import new_path, recorded
from ganlab_sweep.configurations import Configuration, Configurations, check, check_used, varying
from ganlab_sweep.engine import Engine, Screen
from ganlab_sweep.request import Proposed, Request
from ganlab_sweep.search_driver import SearchDriver, plan, start
from ganlab_sweep.space import NAME, parse_space
from ganlab_sweep.store import Sweep
from ganlab_sweep.trial import ENDED, Trial, take_up


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


_Settings = ParamSpec("_Settings")


def _with_settings_of(request: Callable[_Settings, Request]) -> Callable[_Settings, Swept]:
    """`ganlab.sweep`, whose parameters are the settings that a request declares."""

    @functools.wraps(request, updated=())
    def sweep(*gin: _Settings.args, **settings: _Settings.kwargs) -> Swept:
        planned = planned_sweep(request(*gin, **settings))
        stored = created(planned, free_path(planned))
        with stored.locked():
            return Swept(stored.path, run_trials(stored, planned.launcher, planned.search))

    given = {name: each for name, each in Request.settings().items() if each.is_given}
    about = (
        textwrap.fill(f"{name}: {each.python}", 120, initial_indent=" " * 8, subsequent_indent=" " * 12)
        for name, each in given.items()
    )
    sweep.__name__ = sweep.__qualname__ = "sweep"
    newline = "\n"
    sweep.__doc__ = f"""Trains an experiment with many settings and seeds, each as a run in a process of its own.

    `ganlab sweep` on the command line, which can also resume a sweep. Ctrl-C saves the trials and raises.

    Args:
{newline.join(about)}

    Returns:
        The sweep, with all trials.

    Raises:
        GanlabError: There is a mistake in the settings, or the folder cannot be created; nothing is left then. A trial
            that fails does not raise: its status reports it.
    """
    declared, hints = inspect.signature(request).parameters, get_type_hints(Request)
    vars(sweep)["__signature__"] = inspect.Signature(
        [declared[name].replace(annotation=get_args(hints[name])[0]) for name in given], return_annotation=Swept
    )
    return sweep


sweep = _with_settings_of(Request)


def planned_sweep(request: Request) -> Plan:
    """Plans a sweep; everything that can be wrong with it raises here.

    Args:
        request: Its description.

    Raises:
        GanlabError: There is a mistake in it.
    """
    if not request.gin:
        raise ConfigError("Missing experiment file.")
    use_plugins(request.no_plugin, Path(request.plugin_file) if request.plugin_file else None, request.gin[0])
    # Trials read experiment files of their own, which have no plugin file beside them.
    local, content = recorded()
    sources = [str(find_gin_file(name).resolve()) for name in request.gin]
    request = replace(request, gin=sources, plugin_file=local, plugin_content=content)
    launcher, search = launcher_of(request), search_of(request)
    if search.needs_objective and not request.objective:
        raise ConfigError(
            f"searches.{request.search} needs an objective: name a metric, for example --objective critic/loss."
        )
    objective, _, way = (request.objective or "").rpartition(":")
    if way == "min" and request.maximize:
        raise ConfigError(f"--objective {request.objective} and --maximize say the opposite. Set one, not both.")
    if way in ("min", "max"):
        request = replace(request, objective=objective, maximize=way == "max")
    if request.maximize and not request.objective:
        raise ConfigError("--maximize needs an objective: name a metric, for example --objective critic/loss.")
    request = replace(request, grid=_named(request, request.grid), ranges=_named(request, request.ranges))
    space = parse_space(request.grid, request.ranges)
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
        tag = check_logged(request.objective, configurations.recipes)
        if search.needs_objective:
            _check_each(tag, configurations.recipes)
        if way not in ("min", "max") and not request.maximize:
            request = replace(request, maximize=_is_larger_better(tag, configurations.recipes))
        request = replace(request, objective=tag)
    known = [] if search.needs_objective else configurations.made
    return Plan(request, launcher, search, proposals, known, request.threads or max(1, cores() // request.jobs))


def _is_larger_better(tag: str, recipes: Sequence[Recipe]) -> bool:
    """Whether a sweep maximizes a metric; an evaluator's figure without a declared direction is refused."""
    way = better_direction(tag, recipes)
    if tag.startswith("evaluation/") and way not in ("min", "max"):
        raise ConfigError(f"Which values of {tag} are better is unknown. Write --objective {tag}:min, or :max.")
    return way == "max"


def _check_each(tag: str, recipes: Sequence[Recipe]) -> None:
    """Refuses an objective that some experiments do not log: a search would learn nothing from them."""
    for recipe in recipes:
        try:
            check_logged(tag, [recipe])
        except ConfigError as error:
            raise ConfigError(f"A search needs its objective in every configuration. In one: {error}") from error


def _named(request: Request, varied: Sequence[str]) -> tuple[str, ...]:
    """Texts `NAME=...` with the names under which runs record settings; texts of another form are refused later."""
    cut = [text.partition("=") for text in varied]
    named = (setting_name(request.gin, request.params, name) if NAME.fullmatch(name) else name for name, *_ in cut)
    return tuple("".join((name, *rest)) for name, (_, *rest) in zip(named, cut, strict=True))


def free_path(planned: Plan) -> Path:
    """The path of a new sweep, after checking that it can be created.

    Raises:
        RunError: Something exists there, or the name cannot name a folder.
    """
    request = planned.request
    return new_path(request.runs, request.name, "sweep", f"{Path(request.gin[0]).stem}-sweep")


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
    stored: Sweep,
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
        stored: The sweep, which this process holds.
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
        if name not in stored.info:
            raise RunError(f"{line(stored.path)}: sweep.json lacks {name}. Restore it, or start a new sweep.")
    trials = take_up(stored, retry_failed=retry_failed)
    learning = search.needs_objective and not _spent(stored, trials)
    driver = _driver(stored, search) if learning else SearchDriver(stored)
    stored.save()
    opening(trials)
    engine = Engine(stored, trials, driver, launcher, screen=screen, stopped=stopped)
    engine.run()
    return engine.trials


def launcher_of(request: Request) -> Launcher:
    """The launcher that a request names.

    Raises:
        ConfigError: There is none of that name, or an option is wrong.
    """
    options = arguments("launchers", request.launcher, request.launcher_options, "--launcher-option")
    launcher: Launcher = component("launchers", request.launcher)(**options)
    return launcher


def search_of(request: Request) -> Search:
    """The search that a request names.

    Raises:
        ConfigError: There is none of that name, or an option is wrong.
    """
    options = arguments("searches", request.search, request.search_options, "--search-option")
    search: Search = component("searches", request.search)(**options)
    return search


def _spent(stored: Sweep, trials: Sequence[Trial]) -> bool:
    """Whether all trials have ended, and the search has their values and may propose no more."""
    budget, proposals = stored.request.budget, stored.proposals
    over = all(one.status in ENDED for one in trials) and all(proposal.ended for proposal in proposals)
    return over and budget is not None and len(proposals) >= budget


def _driver(stored: Sweep, search: Search) -> SearchDriver:
    request = stored.request
    space = parse_space(request.grid, request.ranges)
    known = stored.configurations()
    configurations = Configurations(request.gin, request.params, varying(space), known)
    for configuration in known:
        if configurations.of(configuration.settings) is not configuration:
            raise ConfigError(
                f"{', '.join(request.gin)}: the experiment has changed since the sweep began, and "
                f"{configuration.name} would now be a different one. Restore the file, or start a new sweep."
            )
    return SearchDriver(stored, search, space, configurations)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
