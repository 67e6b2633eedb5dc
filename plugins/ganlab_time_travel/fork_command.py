"""`ganlab fork`: trains a twin of a run from one of its steps."""

from __future__ import annotations

from pathlib import Path

import click

from ganlab import Run
from ganlab.commands import LocalPath, RunsPath, exit_code, last_screen, run_with_plugins, say, start_tensorflow, warn
from ganlab.runs import check_place, new_run_path


@click.command("fork")
@click.argument("run", metavar="RUN", type=RunsPath("resume"))
@click.option("--at", type=click.IntRange(1), required=True, help="The step: generator updates that both share.")
@click.option(
    "--param",
    "params",
    metavar="NAME=VALUE",
    multiple=True,
    help="A setting of the twin, for example 'optimizers.adam.learning_rate=1e-4'. May be given several times.",
)
@click.option(
    "--runs", type=LocalPath(file_okay=False), help="Folder for the twin, as of 'ganlab run'; by default the run's."
)
@click.option("--name", help="Name of the twin's folder; by default the time, seed and four digits.")
@run_with_plugins
@click.pass_context
def fork(
    ctx: click.Context,
    run: Path,
    at: int,
    params: tuple[str, ...],
    runs: Path | None,
    name: str | None,
) -> None:
    """Trains a twin of a run from one of its steps, with other settings.

    Up to that step the twin is the run. From there it sees the same examples and the same noise, because both depend
    on the seed and the step alone, so what differs is due to the settings. Examples and noise stay the same unless
    the seed, the batch size, the number of replicas or the data change.

    \b
    ganlab fork RUN --at 4000 --param 'constraints.gradient_penalty.weight=1.0'
    ganlab compare RUN TWIN --paired
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    parent = Run(run)
    recipe = parent.recipe(params)  # reports a mistake in it before TensorFlow starts
    where = parent.path.absolute().parent
    path = new_run_path(runs or where.parent, where.name, int(recipe.arguments.get("seed", 0)), name)
    check_place(path)
    start_tensorflow()
    from ganlab_time_travel import fork as train_twin

    twin = train_twin(parent, path, at=at, params=params, console=True, say=warn)
    info = twin.info
    say(last_screen(twin))
    if info.get("status") == "interrupted":
        ctx.exit(exit_code(str(info.get("signal"))))
