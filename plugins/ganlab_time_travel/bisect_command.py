"""`ganlab bisect`: the first step of a run at which a condition holds."""

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
from ganlab_time_travel import parse_condition

if TYPE_CHECKING:
    from ganlab_time_travel import Onset

_SHOWN = 12


@click.command("bisect")
@click.argument("run", metavar="RUN", type=RunsPath())
@click.argument("condition", metavar="CONDITION")
@click.option("--json", "as_json", is_flag=True, help="Print the step and the metrics around it as JSON.")
@run_with_plugins
@click.pass_context
def bisect(
    ctx: click.Context,
    run: Path,
    condition: str,
    as_json: bool,
) -> None:
    """Finds the first step of a run at which a condition on a metric holds.

    CONDITION is a metric, a comparison and a number, or a metric and the word nonfinite. The logged rows are searched
    first; then the iterations before the first row that meets it are trained again, back to a row without any that
    does. Prints the step and what changed there most. The exit status is 1 if no row meets it. Writes nothing.

    \b
    ganlab bisect RUN 'constraints/gradient_penalty/slope > 5'
    ganlab bisect RUN 'critic/loss nonfinite'
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    parsed = parse_condition(condition)
    looked_at = Run(run)
    looked_at.recipe()  # reports a mistake in it before TensorFlow starts
    with printing_to_stderr() if as_json else contextlib.nullcontext():
        start_tensorflow()
        from ganlab_time_travel import bisect as search

        first = search(looked_at, parsed, warn)
    if as_json:
        say_json({"run": str(run), "condition": str(parsed), **_as_dict(first)})
    elif first is None:
        say(f"{line(run)}: {line(parsed)} holds in no logged row.")
    else:
        _show(str(run), str(parsed), first)
    if first is None:
        ctx.exit(1)


def _as_dict(first: Onset | None) -> dict[str, object]:
    if first is None:
        return {"step": None}
    return {
        "step": first.step,
        "exact": first.exact,
        "after": first.after,
        "before": first.before,
        "now": first.now,
    }


def _show(run: str, condition: str, first: Onset) -> None:
    say(f"{line(run)}: {line(condition)} first holds at step {first.step}.")
    if not first.exact:
        say(f"Rows alone were looked at, the last one before at step {first.after}.")
    if not first.changes:
        return
    say("\nThe largest changes there:\n")
    rows = ((tag, f"{before:.6g}", f"{now:.6g}") for tag, before, now in first.changes[:_SHOWN])
    print_table(("metric", ">before", ">at the step"), rows)
