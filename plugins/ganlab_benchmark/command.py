"""`ganlab benchmark`: every constraint on a suite of tasks."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import click
from ganlab_sweep import Duration

from ganlab.commands import (
    HERE,
    Collector,
    LocalPath,
    complete_folders,
    exit_code,
    handling,
    plugin_options,
    say,
    shown,
    unheard,
)
from ganlab.files import line

# What describes a benchmark, and so cannot be changed when it is resumed.
_DESCRIBING = ("suite", "quick", "constraints", "against", "timeout", "runs", "name", "no_plugin")


@click.command("benchmark")
@click.option(
    "--suite",
    metavar="NAME|PATH",
    shell_complete=lambda ctx, parameter, incomplete: _suites(incomplete),
    help="The suite: quick, mnist, full, or a TOML file; by default full.",
)
@click.option("--quick", is_flag=True, help="The same as --suite quick.")
@click.option(
    "--constraint",
    "constraints",
    metavar="NAME",
    multiple=True,
    help="A constraint that takes part; by default every installed one. May be given several times.",
)
@click.option(
    "--against",
    metavar="FILE|none",
    multiple=True,
    help="Results to show beside these, as references; by default those that ganlab ships for the suite, if any. May "
    "be given several times.",
)
@click.option(
    "--jobs", type=click.IntRange(1), help="Number of trials that run at a time; by default this machine's cores."
)
@click.option(
    "--timeout", type=Duration(), metavar="TIME", help="Time limit per trial, for example 30m; none by default."
)
@click.option(
    "--runs",
    type=LocalPath(file_okay=False),
    default=Path("runs"),
    show_default=True,
    help="Folder in which the benchmark's folder is created.",
)
@click.option("--name", help="Name of the benchmark's folder; by default the suite's name and the time.")
@click.option(
    "--resume",
    metavar="FOLDER",
    shell_complete=complete_folders("benchmark.json"),
    type=LocalPath(),
    help="Resume the benchmark in this folder: what is finished is kept.",
)
@click.option("--retry-failed", is_flag=True, help="With --resume: retry trials and measurements that failed.")
@click.option(
    "--dry-run", is_flag=True, help="Print the constraints, the number of trials and the updates whose time they get."
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON at the end.")
@plugin_options(HERE)
@click.pass_context
def benchmark(
    ctx: click.Context, resume: Path | None, retry_failed: bool, dry_run: bool, as_json: bool, **params: Any
) -> None:
    """Compares constraints: trains each on a suite of tasks, with the same time and tuned with the same effort.

    However the benchmark ended, --resume continues it.

    \b
    ganlab benchmark --quick --constraint gradient_penalty --constraint spectral_norm
    ganlab benchmark --quick --constraint mine --plugin-file mine.py
    ganlab benchmark --suite quick --dry-run
    ganlab benchmark --resume runs/benchmark-quick-20260801-120000
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    from ganlab_benchmark import created, free_path, planned_benchmark, reopened
    from ganlab_benchmark.output import print_plan

    if resume is not None:
        if dry_run:
            raise click.UsageError("--dry-run works only for a new benchmark.")
        _check_description_unchanged(ctx)
        plan, folder = reopened(resume, params["plugin_file"])
    else:
        if retry_failed:
            raise click.UsageError("--retry-failed works only with --resume FOLDER: leave it out for a new benchmark.")
        if params["quick"] and params["suite"] not in (None, "quick"):
            raise click.UsageError(
                f"--quick means --suite quick, but --suite is {line(params['suite'])}: leave out one."
            )
        plan, request = planned_benchmark(
            "quick" if params["quick"] else params["suite"] or "full",
            params["constraints"],
            jobs=params["jobs"],
            timeout=params["timeout"],
            against=params["against"],
            no_plugin=params["no_plugin"],
            plugin_file=params["plugin_file"],
        )
        path = free_path(params["runs"], params["name"], plan)
        if dry_run:
            print_plan(plan, request, as_json=as_json)
            return
        folder = created(request, path)
    _run(ctx, plan, folder, jobs=params["jobs"], retry_failed=retry_failed, as_json=as_json)


def _run(ctx: click.Context, plan: Any, folder: Any, *, jobs: int | None, retry_failed: bool, as_json: bool) -> None:
    """Runs what is left of a benchmark and prints its results."""
    from ganlab_sweep import LiveTable

    from ganlab_benchmark import run_benchmark
    from ganlab_benchmark.output import print_results

    say(f"{shown(folder.path)}: {len(plan.contestants)} constraints, suite {line(plan.suite.name)}.", err=True)
    for task, reason in plan.skipped.items():
        say(f"{line(task)}: skipped. {line(reason)}", err=True)
    collector = Collector(_stopping)
    received = collector.received
    with handling(collector.receive):
        results, ended = run_benchmark(
            plan,
            folder,
            screens=LiveTable,
            jobs=jobs,
            retry_failed=retry_failed,
            stopped=lambda: bool(received),
            say=lambda text: say(line(text), err=True),
        )
    with unheard() if received else contextlib.nullcontext():
        print_results(results, folder, ended=ended, as_json=as_json)
    if received:
        ctx.exit(exit_code(received[0].name))
    if any(task["status"] == "pending" for each in results["constraints"].values() for task in each["tasks"].values()):
        ctx.exit(1)


def _suites(incomplete: str) -> list[str]:
    from ganlab_benchmark.suite import shipped_suites

    return [name for name in sorted(shipped_suites()) if name.startswith(incomplete)]


def _stopping() -> None:
    say("Stopping: saving the trials. Interrupt again to leave at once.", err=True)


def _check_description_unchanged(ctx: click.Context) -> None:
    for parameter in ctx.command.params:
        is_given = ctx.get_parameter_source(parameter.name or "") is not click.core.ParameterSource.DEFAULT
        if parameter.name in _DESCRIBING and is_given:
            raise click.UsageError(
                f"--resume continues a benchmark unchanged: leave out {parameter.opts[0]}. Only --jobs, "
                "--plugin-file and --retry-failed may differ."
            )
