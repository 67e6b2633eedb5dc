"""`ganlab replay`: trains a step of a run again."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ganlab import Run
from ganlab.commands import (
    RunsPath,
    print_table,
    printing_to_stderr,
    run_with_plugins,
    say,
    say_json,
    start_tensorflow,
    warn,
)
from ganlab.files import line

if TYPE_CHECKING:
    from ganlab_time_travel import Replayed


@click.command("replay")
@click.argument("run", metavar="RUN", type=RunsPath())
@click.option("--step", type=click.IntRange(1), required=True, help="The step: generator updates done.")
@click.option(
    "--diagnostics",
    metavar="NAME",
    multiple=True,
    help="A diagnostic to look at that step besides, such as slopes. May be given several times.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the row as JSON.")
@run_with_plugins
@click.pass_context
def replay(
    ctx: click.Context,
    run: Path,
    step: int,
    diagnostics: tuple[str, ...],
    as_json: bool,
) -> None:
    """Trains a step of a run again, from its nearest checkpoint before.

    Prints the step's row beside the one that was logged. They are equal bit for bit on the machine and with the
    versions that the run was trained with; if they are not, the exit status is 1. If no row was logged there, it
    prints the metrics of that iteration alone. Writes nothing.

    \b
    ganlab replay RUN --step 4711
    ganlab replay RUN --step 4711 --diagnostics slopes
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    looked_at = Run(run)
    looked_at.recipe()  # reports a mistake in it before TensorFlow starts
    with printing_to_stderr() if as_json else contextlib.nullcontext():
        start_tensorflow()
        from ganlab_time_travel import replay as again

        replayed = again(looked_at, step=step, diagnostics=diagnostics, say=warn)
    if as_json:
        say_json(_as_dict(run, replayed))
    else:
        _show(run, replayed)
    if replayed.differing:
        ctx.exit(1)


def _as_dict(run: Path, replayed: Replayed) -> dict[str, object]:
    rows = {"row": replayed.row, "logged": replayed.logged, "diagnostics": replayed.found}
    return {
        "run": str(run),
        "step": replayed.step,
        "start": replayed.start,
        **{
            name: {r.tag: {"reduced": r.reduced, "replicas": r.replicas} for r in records}
            for name, records in rows.items()
        },
        "differing": replayed.differing,
    }


def _show(run: Path, replayed: Replayed) -> None:
    begun = f"the checkpoint of step {replayed.start}" if replayed.start else "the beginning"
    say(f"{line(run)}, step {replayed.step}, trained again from {begun}\n")
    logged = {record.tag: record for record in replayed.logged}
    rows = []
    for record in [*replayed.row, *replayed.found]:
        then = logged.get(record.tag)
        verdict = ("differs" if record.tag in replayed.differing else "equal") if then else ""
        rows.append((record.tag, f"{record.reduced:.9g}", f"{then.reduced:.9g}" if then else "", verdict))
    missing = logged.keys() - {record.tag for record in replayed.row}
    rows += [(tag, "", f"{logged[tag].reduced:.9g}", "not found again") for tag in sorted(missing)]
    columns = ("metric", ">now", ">logged", "")[: 4 if logged else 2]
    print_table(columns, (row[: len(columns)] for row in rows))
    if not logged:
        say("\nNo row was logged at this step: these are the metrics of its iteration alone.")
    elif replayed.differing:
        differ = "differs" if len(replayed.differing) == 1 else "differ"
        say(f"\n{len(replayed.differing)} of {len(logged)} metrics {differ} from the logged row.")
    else:
        say(f"\nAll {len(logged)} metrics and their replicas' values equal the logged row bit for bit.")
