"""`ganlab sweep`: trains one experiment with many settings and seeds."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ganlab.cli.durations import Duration
from ganlab.cli.messages import say
from ganlab.cli.options import BESIDE_GIN, experiment_options, plugin_options
from ganlab.cli.process import unheard
from ganlab.cli.sweep_output import print_end, print_plan, shown
from ganlab.errors import ConfigError
from ganlab.runs.experiment_source import use_plugins
from ganlab.support.signals import exit_code, handling
from ganlab.version import __version__

if TYPE_CHECKING:
    from ganlab.interfaces import Launcher, Search
    from ganlab.sweeps import Configuration, Sweep

# Parameters that describe a sweep, and so cannot be changed when it is resumed.
_DESCRIBING = (
    "gin_files",
    "params",
    "grids",
    "ranges",
    "seeds",
    "search",
    "search_options",
    "search_seed",
    "budget",
    "objective",
    "maximize",
    "threads",
    "runs",
    "name",
    "no_plugin",
    "plugin_file",
)


@click.command("sweep")
@experiment_options
@click.option(
    "--grid",
    "grids",
    metavar="NAME=[VALUE, ...]",
    multiple=True,
    help="Values of a setting, written as in an experiment file. May be given several times.",
)
@click.option(
    "--range",
    "ranges",
    metavar="NAME=LOW..HIGH[:log]",
    multiple=True,
    help="A range of numbers for a setting, for searches such as random; ':log' draws evenly on a log scale.",
)
@click.option("--seeds", metavar="SEEDS", help="Seeds, for example 0..4 or 0,3,7; by default the experiment's own.")
@click.option("--jobs", type=click.IntRange(1), help="Number of trials that run at a time; by default one.")
@click.option(
    "--threads",
    type=click.IntRange(1),
    help="Threads per trial; by default this machine's cores divided by --jobs. Results depend on it in the last bits.",
)
@click.option(
    "--timeout",
    type=Duration(),
    metavar="TIME",
    help="Time limit per trial, for example 90s, 30m or 2h; the trial then saves and is marked 'timed out'. No limit "
    "by default.",
)
@click.option(
    "--launcher", metavar="NAME", help="Launcher that starts trials; by default local: processes on this machine."
)
@click.option(
    "--launcher-option",
    "launcher_options",
    metavar="NAME=VALUE",
    multiple=True,
    help="A parameter of the launcher. May be given several times.",
)
@click.option("--search", metavar="NAME", help="Search that chooses settings; by default grid: every combination.")
@click.option(
    "--search-option",
    "search_options",
    metavar="NAME=VALUE",
    multiple=True,
    help="A parameter of the search. May be given several times.",
)
@click.option("--search-seed", type=click.IntRange(0), metavar="N", help="Seed of the search; by default 0.")
@click.option("--budget", type=click.IntRange(1), metavar="N", help="Number of configurations that a search may try.")
@click.option(
    "--objective",
    metavar="METRIC",
    help="The metric to minimize (or maximize, with --maximize), by its name in metrics.jsonl, for example "
    "'evaluation/mode_coverage/reverse_kl'; with several seeds, its mean.",
)
@click.option("--maximize", is_flag=True, help="Maximize the objective.")
@click.option(
    "--runs",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder in which the sweep's folder is created.",
)
@click.option("--name", help="Name of the sweep's folder; by default the experiment file's name and the time.")
@click.option(
    "--resume",
    metavar="SWEEP",
    type=click.Path(path_type=Path),
    help="Resume the sweep in this folder: finished trials are kept, interrupted trials are resumed.",
)
@click.option("--retry-failed", is_flag=True, help="With --resume: retry trials that failed, diverged or timed out.")
@click.option("--dry-run", is_flag=True, help="Print the trials and stop.")
@click.option("--json", "as_json", is_flag=True, help="Print the trials as JSON at the end.")
@plugin_options(BESIDE_GIN)
@click.pass_context
def sweep(ctx: click.Context, resume: Path | None, retry_failed: bool, dry_run: bool, as_json: bool, **_: Any) -> None:
    """Trains an experiment with many settings and seeds, each as a separate run.

    Every trial is a process with a run directory inside the sweep's. However the sweep ended, --resume continues it.

    \b
    ganlab sweep --gin quickstart --grid 'constraints.gradient_penalty.weight=[0.1, 1, 10]' --seeds 0..4 --jobs 2
    ganlab sweep --gin quickstart --grid 'experiment.constraints=[@constraints.r1(), @constraints.spectral_norm()]'
    ganlab sweep --gin quickstart --range 'optimizers.adam.learning_rate=1e-5..1e-2:log' --search random --budget 20
    ganlab sweep --resume runs/quickstart-sweep-20260801-120000
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    if resume is not None:
        if dry_run:
            raise click.UsageError("--dry-run works only for a new sweep; 'ganlab runs list' shows an existing one.")
        _check_description_unchanged(ctx)
        found, launcher, search = _reopened(resume, ctx.params)
    else:
        if retry_failed:
            raise click.UsageError("--retry-failed works only with --resume SWEEP: leave it out for a new sweep.")
        asked, launcher, search = _asked(ctx.params)
        path = _place(ctx.params, asked)
        proposals, configurations = _described(asked, search)
        threads = ctx.params["threads"] or max(1, _cores() // asked["jobs"])
        if dry_run:
            print_plan(asked, proposals, configurations, threads, as_json=as_json)
            return
        found = _created(path, asked, proposals, configurations, threads)
    _go(ctx, found, launcher, search if search.needs_objective else None, retry_failed=retry_failed, as_json=as_json)


def _asked(params: Mapping[str, Any]) -> tuple[dict[str, Any], Launcher, Search]:
    """The sweep that the command line asks for, as sweep.json stores it, with the launcher and the search."""
    from ganlab.config.files import find_gin_file
    from ganlab.sweeps import parse_seeds

    if not params["gin_files"]:
        raise click.UsageError("Missing experiment: pass --gin FILE, for example --gin quickstart, or --resume SWEEP.")
    use_plugins(params["no_plugin"], params["plugin_file"], params["gin_files"][0])
    asked = {
        "gin": [str(find_gin_file(name).resolve()) for name in params["gin_files"]],
        "params": list(params["params"]),
        "grid": list(params["grids"]),
        "range": list(params["ranges"]),
        "seeds": parse_seeds(params["seeds"]) if params["seeds"] is not None else [],
        "jobs": params["jobs"] or 1,
        "timeout": params["timeout"],
        "launcher": params["launcher"] or "local",
        "launcher_options": list(params["launcher_options"]),
        "search": params["search"] or "grid",
        "search_options": list(params["search_options"]),
        "search_seed": params["search_seed"] or 0,
        "budget": params["budget"],
        "objective": params["objective"],
        "direction": "maximize" if params["maximize"] else "minimize",
        "no_plugin": list(params["no_plugin"]),
        "plugin_file": _plugin_file(),
    }
    launcher, search = _made("launcher", asked), _made("search", asked)
    if search.needs_objective and not asked["objective"]:
        raise ConfigError(
            f"searches.{asked['search']} needs an objective: name a metric, for example --objective critic/loss."
        )
    if asked["direction"] == "maximize" and not asked["objective"]:
        raise ConfigError("--maximize needs an objective: name a metric, for example --objective critic/loss.")
    return asked, launcher, search


def _described(asked: dict[str, Any], search: Search) -> tuple[list[dict[str, Any]], list[Configuration]]:
    """All proposals and configurations, checked; none if the search makes them as results come in."""
    from ganlab.config import load_variant
    from ganlab.sweeps import Configurations, check, check_used, parse_space, plan
    from ganlab.sweeps.search_driver import start

    space = parse_space(asked["grid"], asked["range"])
    if not asked["seeds"]:
        asked["seeds"] = [load_variant(asked["gin"], asked["params"], {}).recipe.arguments.get("seed", 0)]
    configurations = Configurations(asked["gin"], asked["params"], list(space), known=())
    if search.needs_objective:
        start(search, space, asked, ())  # raises if something is wrong; it is started anew for the trials
        check(configurations, space)
        return [], []
    proposals = plan(search, space, asked, configurations)
    check_used(configurations)
    return proposals, configurations.made


def _place(params: Mapping[str, Any], asked: Mapping[str, Any]) -> Path:
    """The path of a new sweep, after checking that it can be created."""
    from ganlab.runs.fields import check_name, check_place
    from ganlab.support.paths import as_name
    from ganlab.sweeps import Sweep

    name = params["name"]
    if name is None:
        name = as_name(f"{Path(asked['gin'][0]).stem}-sweep-{datetime.now(UTC).strftime('%Y%m%d-%H%M%S')}")
    else:
        check_name("sweep name", name)
    path: Path = params["runs"].resolve() / name
    Sweep.check_free(path)
    check_place(path)
    return path


def _created(
    path: Path,
    asked: dict[str, Any],
    proposals: list[dict[str, Any]],
    configurations: Sequence[Configuration],
    threads: int,
) -> Sweep:
    from ganlab.sweeps import Sweep

    now = datetime.now(UTC)
    info = {
        "ganlab": __version__,
        "created": now.isoformat(timespec="seconds"),
        "folder": str(Path.cwd()),
        "threads": threads,
        "asked": asked,
        "proposals": proposals,
        "trials": {},
    }
    return Sweep.create(path, info, configurations)


def _check_description_unchanged(ctx: click.Context) -> None:
    for parameter in ctx.command.params:
        given = ctx.get_parameter_source(parameter.name or "") is not click.core.ParameterSource.DEFAULT
        if parameter.name in _DESCRIBING and given:
            raise click.UsageError(
                f"--resume continues a sweep unchanged: leave out {parameter.opts[0]}. Only --jobs, --timeout, "
                "--launcher, --launcher-option and --retry-failed may differ."
            )


def _reopened(path: Path, params: Mapping[str, Any]) -> tuple[Sweep, Launcher, Search]:
    """An existing sweep, with the options that may change on resume."""
    from ganlab.sweeps import Sweep

    found = Sweep(path.resolve())
    asked = found.asked
    use_plugins(asked["no_plugin"], Path(asked["plugin_file"]) if asked["plugin_file"] else None)
    if params["jobs"]:
        asked["jobs"] = params["jobs"]
    if params["timeout"]:
        asked["timeout"] = params["timeout"]
    if params["launcher"]:
        asked["launcher"], asked["launcher_options"] = params["launcher"], []
    if params["launcher_options"]:
        asked["launcher_options"] = list(params["launcher_options"])
    return found, _made("launcher", asked), _made("search", asked)


def _go(
    ctx: click.Context, found: Sweep, launcher: Launcher, search: Search | None, *, retry_failed: bool, as_json: bool
) -> None:
    """Runs the remaining trials of a sweep and prints how it ended."""
    from ganlab.sweeps import Engine, take_up
    from ganlab.sweeps.screen import LiveTable, summary

    with found.locked(), _signals() as received, LiveTable() as screen:
        trials = take_up(found, retry_failed=retry_failed)
        asking = _asking(found, search)
        found.save()
        opening = f"{shown(found.path)}: {summary(trials) if trials else 'configurations as results come in'}"
        say(f"{opening}, {found.asked['jobs']} at a time, threads: {found.info['threads']} each.", err=True)
        engine = Engine(found, trials, asking, launcher, screen=screen, stopped=lambda: bool(received))
        engine.run()
    with unheard() if received else contextlib.nullcontext():
        print_end(found, engine.trials, interrupted=bool(received), as_json=as_json)
    if received:
        ctx.exit(exit_code(received[0].name))
    if any(trial.status not in ("completed", "pruned") for trial in engine.trials):
        ctx.exit(1)


def _asking(found: Sweep, search: Search | None) -> Any:
    from ganlab.sweeps import Asking, Configurations, parse_space

    if search is None:
        return Asking(found)
    asked = found.asked
    space = parse_space(asked["grid"], asked["range"])
    known = found.configurations()
    configurations = Configurations(asked["gin"], asked["params"], list(space), known)
    for configuration in known:
        if configurations.of(configuration.settings) is not configuration:
            raise ConfigError(
                f"{', '.join(asked['gin'])}: the experiment has changed since the sweep began, and "
                f"{configuration.name} would now be a different one. Restore the file, or start a new sweep."
            )
    return Asking(found, search, space, configurations)


def _made(role: str, asked: Mapping[str, Any]) -> Any:
    from ganlab.config import arguments
    from ganlab.plugins.manager import component

    kind, name = {"launcher": "launchers", "search": "searches"}[role], asked[role]
    return component(kind, name)(**arguments(kind, name, asked[f"{role}_options"], f"--{role}-option"))


def _plugin_file() -> str | None:
    """The plugin file in use, for trials: their own experiment files have none beside them."""
    from ganlab.plugins.manager import LOCAL_MODULE, current

    return next((row.distribution for row in current().rows if row.name == LOCAL_MODULE), None)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def _signals() -> Iterator[list[signal.Signals]]:
    """Context manager: collects SIGINT, SIGTERM and SIGHUP so that trials can save; a second SIGINT stops at once."""
    received: list[signal.Signals] = []

    def receive(number: int, frame: Any) -> None:
        if received and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not received:
            say("Stopping: saving the trials. Interrupt again to leave at once.", err=True)
        received.append(signal.Signals(number))

    with handling(receive):
        yield received
