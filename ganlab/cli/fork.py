"""`ganlab fork`: trains a twin of a run from one of its steps."""

from __future__ import annotations

from pathlib import Path

import click

from ganlab.cli.messages import say, warn
from ganlab.cli.options import LocalPath, run_with_plugins
from ganlab.cli.quiet_start import start_tensorflow
from ganlab.run import Run
from ganlab.runs import check_place, new_run_path
from ganlab.support.signals import exit_code


@click.command("fork")
@click.argument("run", metavar="RUN", type=LocalPath())
@click.option("--at", type=click.IntRange(1), required=True, help="The step: generator updates that both share.")
@click.option(
    "--param",
    "params",
    metavar="NAME=VALUE",
    multiple=True,
    help="A setting of the twin, for example 'optimizers.adam.learning_rate=1e-4'. May be given several times.",
)
@click.option("--name", help="Name of the twin's folder, beside the run's; by default the time, seed and four digits.")
@run_with_plugins
@click.pass_context
def fork(
    ctx: click.Context,
    run: Path,
    at: int,
    params: tuple[str, ...],
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
    from ganlab.cli.run import last_screen

    parent = Run(run)
    recipe = parent.recipe(params)  # reports a mistake in it before TensorFlow starts
    where = parent.path.absolute().parent
    path = new_run_path(where.parent, where.name, int(recipe.arguments.get("seed", 0)), name)
    check_place(path)
    start_tensorflow()
    from ganlab.training.time_travel import fork as train_twin

    twin = train_twin(parent, path, at=at, params=params, console=True, say=warn, as_run=Run)
    info = twin.info
    say(last_screen(twin))  # type: ignore[arg-type]
    if info.get("status") == "interrupted":
        ctx.exit(exit_code(str(info.get("signal"))))
