"""`ganlab bisect`: the first step of a run at which a condition holds."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ganlab.cli.experiments import use_plugins
from ganlab.cli.messages import say, warn
from ganlab.cli.options import OF_THE_RUN, LocalPath, plugin_options
from ganlab.cli.quiet_start import start_tensorflow
from ganlab.cli.tables import cell, table_console
from ganlab.plugins.import_guard import printing_to_stderr
from ganlab.support.terminal import line

if TYPE_CHECKING:
    from ganlab.training.time_travel import Onset

_SHOWN = 12


@click.command("bisect")
@click.argument("run", metavar="RUN", type=LocalPath())
@click.argument("condition", metavar="CONDITION")
@click.option("--json", "as_json", is_flag=True, help="Print the step and the metrics around it as JSON.")
@plugin_options(OF_THE_RUN)
@click.pass_context
def bisect(
    ctx: click.Context,
    run: Path,
    condition: str,
    as_json: bool,
    no_plugin: tuple[str, ...],
    plugin_file: Path | None,
) -> None:
    """Finds the first step of a run at which a condition on a metric holds.

    CONDITION is a metric, a comparison and a number, or a metric and the word nonfinite. The logged rows are searched
    first; then the iterations before the first row that meets it are trained again, back to a row without any that
    does. Prints the step and what changed there most. The exit status is 1 if no row meets it. Writes nothing.

    \b
    ganlab bisect RUN 'constraints/gradient_penalty/slope > 5'
    ganlab bisect RUN 'critic/loss nonfinite'
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    from ganlab.run import Run
    from ganlab.runs.conditions import parse_condition

    asked = parse_condition(condition)
    looked_at = Run(run)
    use_plugins(no_plugin, plugin_file)
    looked_at.recipe()  # reports a mistake in it before TensorFlow starts
    with printing_to_stderr() if as_json else contextlib.nullcontext():
        start_tensorflow()
        from ganlab.training.time_travel import bisect as search

        found = search(looked_at, asked, warn)
    if as_json:
        say(json.dumps({"run": str(run), "condition": str(asked), **_as_dict(found)}, indent=2))
    elif found is None:
        say(f"{line(run)}: {line(asked)} holds in no logged row.")
    else:
        _show(str(run), str(asked), found)
    if found is None:
        ctx.exit(1)


def _as_dict(found: Onset | None) -> dict[str, object]:
    from ganlab.telemetry.jsonl import to_json

    if found is None:
        return {"step": None}
    both = {"before": to_json(found.before), "now": to_json(found.now)}
    return {"step": found.step, "exact": found.exact, "after": found.after, **both}


def _show(run: str, asked: str, found: Onset) -> None:
    from rich.table import Table

    say(f"{line(run)}: {line(asked)} first holds at step {found.step}.")
    if not found.exact:
        say(f"Rows alone were looked at, the last one before at step {found.after}.")
    if not found.changes:
        return
    say("\nThe largest changes there:\n")
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("metric")
    table.add_column("before", justify="right")
    table.add_column("at the step", justify="right")
    for tag, before, now in found.changes[:_SHOWN]:
        table.add_row(*(cell(line(text)) for text in (tag, f"{before:.6g}", f"{now:.6g}")))
    table_console().print(table)
