"""`ganlab sweep`: trains one experiment with many settings and seeds."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ganlab.cli.durations import Duration
from ganlab.cli.experiments import use_plugins
from ganlab.cli.messages import say
from ganlab.cli.options import BESIDE_GIN, LocalPath, experiment_options, plugin_options
from ganlab.cli.process import unheard
from ganlab.cli.sweep_output import print_end, print_plan, shown
from ganlab.errors import NotNamedError
from ganlab.support.signals import Collector, exit_code, handling

if TYPE_CHECKING:
    from ganlab.interfaces import Launcher, Search
    from ganlab.sweeps import Sweep, Trial

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
    type=LocalPath(file_okay=False),
    default=Path("runs"),
    show_default=True,
    help="Folder in which the sweep's folder is created.",
)
@click.option("--name", help="Name of the sweep's folder; by default the experiment file's name and the time.")
@click.option(
    "--resume",
    metavar="SWEEP",
    type=LocalPath(),
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
        new, launcher, search = _new(ctx.params, dry_run=dry_run, as_json=as_json)
        if new is None:
            return
        found = new
    _run(ctx, found, launcher, search, retry_failed=retry_failed, as_json=as_json)


def _new(params: Mapping[str, Any], *, dry_run: bool, as_json: bool) -> tuple[Sweep | None, Launcher, Search]:
    """A new sweep with its launcher and its search; printed, and not created, in a dry run."""
    from ganlab.sweeps import Request, created, free_path, parse_seeds, planned_sweep

    if not params["gin_files"]:
        raise click.UsageError("Missing experiment: pass --gin FILE, for example --gin quickstart, or --resume SWEEP.")
    request = Request(
        gin=params["gin_files"],
        params=params["params"],
        grid=params["grids"],
        range=params["ranges"],
        seeds=parse_seeds(params["seeds"]) if params["seeds"] is not None else (),
        jobs=params["jobs"] or 1,
        timeout=params["timeout"],
        launcher=params["launcher"] or "local",
        launcher_options=params["launcher_options"],
        search=params["search"] or "grid",
        search_options=params["search_options"],
        search_seed=params["search_seed"] or 0,
        budget=params["budget"],
        objective=params["objective"],
        direction="maximize" if params["maximize"] else "minimize",
        no_plugin=params["no_plugin"],
        plugin_file=str(params["plugin_file"]) if params["plugin_file"] else None,
    )
    planned = planned_sweep(request, params["threads"])
    path = free_path(params["runs"], params["name"], planned)
    if dry_run:
        print_plan(planned.request, planned.proposals, planned.configurations, planned.threads, as_json=as_json)
        return None, planned.launcher, planned.search
    return created(planned, path), planned.launcher, planned.search


def _check_description_unchanged(ctx: click.Context) -> None:
    for parameter in ctx.command.params:
        given = ctx.get_parameter_source(parameter.name or "") is not click.core.ParameterSource.DEFAULT
        if parameter.name in _DESCRIBING and given:
            raise click.UsageError(
                f"--resume continues a sweep unchanged: leave out {parameter.opts[0]}. Only --jobs, --timeout, "
                "--launcher, --launcher-option, --plugin-file and --retry-failed may differ."
            )


def _reopened(path: Path, params: Mapping[str, Any]) -> tuple[Sweep, Launcher, Search]:
    """An existing sweep, with the options that may change on resume."""
    from ganlab.runs.plugin_file import confirmed
    from ganlab.sweeps import Sweep, launcher_of, search_of

    found = Sweep(path.resolve())
    request = found.request
    local = confirmed("sweep", request.plugin_file, request.plugin_content, params["plugin_file"])
    use_plugins(request.no_plugin, local)
    if (
        request.launcher != "local"
        and request.launcher_options
        and not (params["launcher"] or params["launcher_options"])
    ):
        options = [word for option in request.launcher_options for word in ("--launcher-option", option)]
        raise NotNamedError(
            ["--launcher", request.launcher, *options],
            "such options can name machines and programs, and those of a folder are used only if you name them, too.",
        )
    changed = {name: params[name] for name in ("jobs", "timeout", "launcher") if params[name]}
    if params["launcher"] or params["launcher_options"]:
        changed["launcher_options"] = params["launcher_options"]
    found.request = replace(request, plugin_file=str(local.resolve()) if local else None, **changed)
    return found, launcher_of(found.request), search_of(found.request)


def _run(
    ctx: click.Context, found: Sweep, launcher: Launcher, search: Search, *, retry_failed: bool, as_json: bool
) -> None:
    """Runs the remaining trials of a sweep and prints how it ended."""
    from ganlab.sweeps import run_trials
    from ganlab.sweeps.screen import LiveTable, summary

    def opening(trials: Sequence[Trial]) -> None:
        start = f"{shown(found.path)}: {summary(trials) if trials else 'configurations as results come in'}"
        say(f"{start}, {found.request.jobs} at a time, threads: {found.info['threads']} each.", err=True)

    collector = Collector(_stopping)
    received = collector.received
    with found.locked(), handling(collector.receive), LiveTable() as screen:
        trials = run_trials(
            found,
            launcher,
            search,
            screen=screen,
            retry_failed=retry_failed,
            stopped=lambda: bool(received),
            opening=opening,
        )
    with unheard() if received else contextlib.nullcontext():
        print_end(found, trials, interrupted=bool(received), as_json=as_json)
    if received:
        ctx.exit(exit_code(received[0].name))
    if not trials or any(trial.status not in ("completed", "pruned") for trial in trials):
        ctx.exit(1)


def _stopping() -> None:
    say("Stopping: saving the trials. Interrupt again to leave at once.", err=True)
