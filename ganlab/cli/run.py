"""`ganlab run`: trains an experiment."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import Any

import click

from ganlab.cli.messages import of_last_metrics, say
from ganlab.cli.options import BESIDE_GIN, OPENED, TRAINED, RunsPath, experiment_options, plugin_options
from ganlab.cli.process import unheard
from ganlab.cli.quiet_start import start_tensorflow
from ganlab.composition import compose
from ganlab.config import render
from ganlab.config.overrides import Override
from ganlab.errors import RunCompletedError
from ganlab.plugins.recipes import Recipe
from ganlab.run import Run
from ganlab.runs import check_place, new_run_path
from ganlab.runs.experiment_source import read_experiment, use_plugins
from ganlab.runs.fields import check_name
from ganlab.support.formatting import in_time
from ganlab.support.signals import exit_code
from ganlab.support.terminal import line


@click.command("run")
@experiment_options
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Override experiment.seed.")
@click.option(
    "--runs",
    type=RunsPath("create", file_okay=False),
    default=Path("runs"),
    show_default=True,
    help="Folder in which the run's folder is created, or its address: s3://bucket/runs.",
)
@click.option("--name", help="Name of the run's folder; by default the time, the seed and four random hex digits.")
@click.option("--resume", metavar="RUN", type=RunsPath("resume"), help="Resume the run in this folder.")
@click.option(
    "--resume-or-start",
    metavar="NAME",
    help="Start the run of this name, resume it if it exists, or do nothing if it is complete: for jobs that a cluster "
    "repeats. Exits with 75 while another process trains it.",
)
@click.option(
    "--allow-changes",
    is_flag=True,
    help="With --resume or --resume-or-start: proceed although the settings (--gin, --param, --seed or the run's "
    "config.gin), the data or the code of plugins have changed.",
)
@click.option(
    "--profile",
    metavar="FROM..TO",
    default="",
    help="Trace the iterations between two steps, for TensorBoard's profiler: --profile 20..25.",
)
@click.option("--dry-run", is_flag=True, help="Print the whole resolved experiment and stop.")
@plugin_options(BESIDE_GIN)
@click.pass_context
def run(
    ctx: click.Context,
    runs: Path,
    name: str | None,
    resume: Path | None,
    resume_or_start: str | None,
    allow_changes: bool,
    profile: str,
    dry_run: bool,
    **described: Any,
) -> None:
    """Trains the experiment in a gin file, FILE or --gin FILE: a path, or the name of a shipped file.

    \b
    ganlab run quickstart
    ganlab run mine.gin --param experiment.steps=100 --seed 3
    ganlab run --resume runs/mine/20260801-120000-s3-1f2e
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    if (resume is not None) + (resume_or_start is not None) + (name is not None) > 1:
        raise click.UsageError("--name, --resume and --resume-or-start each choose the run's folder: give one.")
    address, folder = ctx.meta.get(OPENED, ("", resume))
    if resume not in (None, folder):
        raise click.UsageError(
            "An address of --runs is for a new run: with --resume, give the address of the run itself."
        )
    if resume is not None:
        path, experiment = resume, _resumed(resume, **described)
    else:
        if not described["gin_files"]:
            raise click.UsageError(
                "Missing experiment: name a FILE, for example 'ganlab run quickstart', or pass --resume RUN."
            )
        if allow_changes and not resume_or_start:
            raise click.UsageError(
                "--allow-changes works only with --resume and --resume-or-start: leave it out for a new run."
            )
        experiment = _described(**described)
        stem, seed = Path(described["gin_files"][0]).stem, experiment.arguments.get("seed", 0)
        path = new_run_path(runs, stem, seed, name, address=address)
        if resume_or_start is not None:
            check_name("run name", resume_or_start)
            path = path.with_name(resume_or_start)
        check_place(path)  # before TensorFlow, which takes seconds
    if dry_run:
        say(render(experiment, defaults=True), nl=False)
        return
    how = {"resume": resume is not None, "resume_or_start": resume_or_start is not None}
    ctx.meta.get(TRAINED, lambda path, again: None)(path, how["resume_or_start"])
    finished = _train(experiment, path, allow_changes=allow_changes, profile=profile, **how)
    info = finished.info
    interrupted = info.get("status") == "interrupted"
    with unheard() if interrupted else contextlib.nullcontext():
        at = "/".join((address.rstrip("/"), *path.relative_to(folder).parts)) if address else ""
        how_it_ended = "stopped" if interrupted else "done"
        worker = f"Worker {how_it_ended} at step {info.get('step')}; the run is where the chief's is."
        say(last_screen(finished, at) if info.get("chief", True) else worker)
    if interrupted:
        # The run was saved, but the exit code still names the signal.
        ctx.exit(exit_code(str(info.get("signal"))))


def last_screen(finished: Run, address: str = "") -> str:
    """The summary printed after a run: how it ended, its last figures, its folder, and the next command.

    Args:
        finished: The run.
        address: The address of its mirror, from which it is resumed; empty without one.
    """
    info = finished.info
    status, step, steps = info.get("status"), info.get("step"), info.get("steps")
    lines = ["", f"{str(status).capitalize()} at step {step} of {steps} in {in_time(info.get('wall_seconds', 0.0))}."]
    for part, title in (("metrics", of_last_metrics(info)), ("evaluation", "Last evaluation")):
        values = info.get(part, {})
        width = max(map(len, values), default=0)
        if values:
            rows = (f"  {line(name):<{width}}  {line(_number(value))}" for name, value in values.items())
            lines += ["", f"{title}:", *rows]
    lines += ["", f"Run: {line(finished.path)}"]
    if status == "interrupted":
        lines.append(f"Resume it: ganlab run --resume {line(shlex.quote(address or str(finished.path)))}")
    lines.append(f"See it: ganlab tensorboard {line(shlex.quote(str(finished.path.parent.parent)))}")
    return "\n".join(lines)


def _described(
    gin_files: tuple[str, ...],
    params: tuple[str, ...],
    seed: int | None,
    no_plugin: tuple[str, ...],
    plugin_file: Path | None,
) -> Recipe:
    use_plugins(no_plugin, plugin_file, gin_files[0])
    return read_experiment(gin_files, _with_seed(params, seed))


def _resumed(path: Path, **described: Any) -> Recipe:
    """The run's own experiment, or that of the given files; whether they may differ is checked later."""
    resumed = Run(path)
    if described["gin_files"]:
        return _described(**described)
    use_plugins(described["no_plugin"], described["plugin_file"])
    return resumed.recipe(_with_seed(described["params"], described["seed"]))


def _with_seed(params: tuple[str, ...], seed: int | None) -> list[str]:
    return [*params, *([Override(f"experiment.seed={seed}", f"--seed {seed}")] if seed is not None else [])]


def _train(recipe: Recipe, path: Path, *, allow_changes: bool, profile: str, **how: bool) -> Run:
    if how["resume"] or path.exists():
        from ganlab.runs.resuming import check_resumable

        # Before TensorFlow, which takes seconds.
        with contextlib.suppress(RunCompletedError) if how["resume_or_start"] else contextlib.nullcontext():
            check_resumable(Run(path), recipe, allow_changes=allow_changes)
    start_tensorflow()
    from ganlab.run import train

    experiment = compose(recipe)
    options: dict[str, Any] = {**how, **({"profile": profile} if profile else {})}
    trained: Run = train(experiment, path, allow_changes=allow_changes, console=True, **options)
    return trained


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (int, float)) else str(value)
