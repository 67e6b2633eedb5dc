"""`ganlab sweep`: trains one experiment with many settings and seeds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ganlab.commands import (
    BESIDE_GIN,
    Collector,
    LocalPath,
    complete_folders,
    exit_code,
    experiment_options,
    handling,
    plugin_options,
    say,
    unheard,
    use_plugins,
)
from ganlab.errors import NotNamedError
from ganlab.runs import confirmed
from ganlab_sweep import Request, Sweep, cores, created, launcher_of, run_trials, search_of
from ganlab_sweep import request as kinds
from ganlab_sweep.durations import Duration
from ganlab_sweep.output import print_end, print_plan, shown
from ganlab_sweep.screen import LiveTable, summary
from ganlab_sweep.sweeping import free_path, planned_sweep

if TYPE_CHECKING:
    from ganlab import Launcher, Search
    from ganlab_sweep import Trial

Command = TypeVar("Command", bound=Callable[..., Any])

# The options of kinds of settings.
_OPTIONS: Mapping[kinds.Kind, dict[str, Any]] = {
    **{kind: {"multiple": True} for kind in (kinds.LISTS, kinds.RANGES, kinds.VALUES)},
    **{kind: {"type": click.IntRange(1)} for kind in (kinds.COUNT, kinds.COUNT_OR_NONE)},
    kinds.SEED: {"type": click.IntRange(0)},
    kinds.SECONDS: {"type": Duration()},
    kinds.SWITCH: {"is_flag": True},
    kinds.FOLDER: {"type": LocalPath(file_okay=False), "show_default": True},
}
# The names under which options that several commands share are passed.
_SHARED = {"gin_files": "gin"}


def _options_of_request(command: Command) -> Command:
    """Adds an option for each setting of a request that has one."""
    for name, each in reversed(Request.settings().items()):
        if each.option:
            options = {**_OPTIONS.get(each.kind, {}), "metavar": each.metavar}
            options["help"] = f"{each.about} May be given several times." if "multiple" in options else each.about
            if "show_default" in options:
                options["default"] = each.default
            command = click.option(*each.option.split(), name, **options)(command)
    return command


@click.command("sweep")
@experiment_options
@_options_of_request
@click.option(
    "--resume",
    metavar="SWEEP",
    shell_complete=complete_folders("sweep.json"),
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
    ganlab sweep quickstart --grid 'constraints.gradient_penalty.weight=[0.1, 1, 10]' --seeds 0..4 --jobs 2
    ganlab sweep quickstart --grid 'experiment.constraints=[@constraints.r1(), @constraints.spectral_norm()]'
    ganlab sweep quickstart --range 'optimizers.adam.learning_rate=1e-5..1e-2:log' --search random --budget 20
    ganlab sweep --resume runs/quickstart-sweep-20260801-120000
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    if resume is not None:
        if dry_run:
            raise click.UsageError("--dry-run works only for a new sweep; 'ganlab runs list' shows an existing one.")
        stored, launcher, search = _reopened(resume, _chosen_settings(ctx, resumed=True))
    else:
        if retry_failed:
            raise click.UsageError("--retry-failed works only with --resume SWEEP: leave it out for a new sweep.")
        new, launcher, search = _new(_chosen_settings(ctx), dry_run=dry_run, as_json=as_json)
        if new is None:
            return
        stored = new
    _run(ctx, stored, launcher, search, retry_failed=retry_failed, as_json=as_json)


def _chosen_settings(ctx: click.Context, *, resumed: bool = False) -> dict[str, Any]:
    """The settings that the command line gives, by name; if a sweep is resumed, only those that may change."""
    settings = {}
    for parameter in ctx.command.params:
        name = _SHARED.get(parameter.name or "", parameter.name or "")
        setting = Request.settings().get(name)
        source = ctx.get_parameter_source(parameter.name or "")
        if setting is None or source is click.core.ParameterSource.DEFAULT:
            continue
        if resumed and not setting.may_change:
            given = "FILE and --gin" if name == "gin" else parameter.opts[0]
            raise click.UsageError(
                f"--resume continues a sweep unchanged: leave out {given}. Only --jobs, --threads, "
                "--timeout, --launcher, --launcher-option, --plugin-file and --retry-failed may differ."
            )
        settings[name] = ctx.params[parameter.name or ""]
    return settings


def _new(settings: Mapping[str, Any], *, dry_run: bool, as_json: bool) -> tuple[Sweep | None, Launcher, Search]:
    """A new sweep with its launcher and its search; printed, and not created, in a dry run."""
    if "gin" not in settings:
        raise click.UsageError(
            "Missing experiment: name a FILE, for example 'ganlab sweep quickstart', or pass --resume SWEEP."
        )
    planned = planned_sweep(Request(**settings))
    path = free_path(planned)
    if dry_run:
        print_plan(planned.request, planned.proposals, planned.configurations, planned.threads, as_json=as_json)
        return None, planned.launcher, planned.search
    return created(planned, path), planned.launcher, planned.search


def _reopened(path: Path, settings: Mapping[str, Any]) -> tuple[Sweep, Launcher, Search]:
    """An existing sweep, with the settings that may change on resume."""
    stored = Sweep(path.resolve())
    request = stored.request
    local = confirmed("sweep", request.plugin_file, request.plugin_content, settings.get("plugin_file"))
    use_plugins(request.no_plugin, local)
    launched = {name: settings[name] for name in ("launcher", "launcher_options") if name in settings}
    if request.launcher != "local" and request.launcher_options and not launched:
        options = [word for option in request.launcher_options for word in ("--launcher-option", option)]
        raise NotNamedError(
            ["--launcher", request.launcher, *options],
            "such options can name machines and programs, and those of a folder are used only if you name them, too.",
        )
    if launched:
        launched.setdefault("launcher_options", ())
    asked = {"jobs": request.jobs, "threads": int(stored.info.get("threads", 1))}
    # A folder alone does not decide how much starts on this machine.
    least = asked if launched else {name: min(number, cores()) for name, number in asked.items()}
    if any(least[name] < number and name not in settings for name, number in asked.items()):
        words = " ".join(f"--{name} {number}" for name, number in asked.items())
        say(f"{shown(stored.path)}: sweep.json has more than this machine's cores. To take that: {words}", err=True)
    changed = {**least, **settings, **launched, "plugin_file": local.resolve() if local else None}
    stored.request = replace(request, **changed)
    return stored, launcher_of(stored.request), search_of(stored.request)


def _run(
    ctx: click.Context, stored: Sweep, launcher: Launcher, search: Search, *, retry_failed: bool, as_json: bool
) -> None:
    """Runs the remaining trials of a sweep and prints how it ended."""

    def opening(trials: Sequence[Trial]) -> None:
        start = f"{shown(stored.path)}: {summary(trials) if trials else 'configurations as results come in'}"
        say(f"{start}, {stored.request.jobs} at a time, threads: {stored.threads} each.", err=True)

    collector = Collector(_stopping)
    received = collector.received
    with stored.locked(), handling(collector.receive), LiveTable() as screen:
        trials = run_trials(
            stored,
            launcher,
            search,
            screen=screen,
            retry_failed=retry_failed,
            stopped=lambda: bool(received),
            opening=opening,
        )
    with unheard() if received else contextlib.nullcontext():
        print_end(stored, trials, interrupted=bool(received), as_json=as_json)
    if received:
        ctx.exit(exit_code(received[0].name))
    if not trials or any(trial.status not in ("completed", "pruned") for trial in trials):
        ctx.exit(1)


def _stopping() -> None:
    say("Stopping: saving the trials. Interrupt again to leave at once.", err=True)
