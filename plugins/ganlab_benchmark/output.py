"""Output of `ganlab benchmark`: the plan before it, and the tables after it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ganlab.commands import cell, counted, say, shown, table_console
from ganlab.files import line

if TYPE_CHECKING:
    from ganlab_benchmark import Folder, Plan


def print_plan(plan: Plan, request: Mapping[str, Any], *, as_json: bool) -> None:
    """Prints what a benchmark would train."""
    from ganlab_benchmark import plan as plans

    counts = {each.name: plans.trials_of(plan, each) for each in plan.contestants if each.name not in plan.refused}
    trials = sum(counts.values())
    updates = sum(_updates(plan, each) for each in plan.contestants if each.name in counts)
    if as_json:
        data = {
            "suite": {"name": plan.suite.name, "path": str(plan.suite.path), "hash": request["fingerprint"]},
            "jobs": request["jobs"],
            "threads": request["threads"],
            "against": request["against"],
            "trials": counts,
            "refused": dict(plan.refused),
            "skipped": dict(plan.skipped),
            "updates": updates,
        }
        say(json.dumps(data, indent=2))
        return
    say(f"{line(': '.join(filter(None, (plan.suite.title, plan.suite.about))))}\n")
    for task in plan.suite.tasks.values():
        reason = plan.skipped.get(task.name)
        say(f"{line(task.name)} ({task.kind}): {line(task.title)}{f': skipped. {line(reason)}' if reason else ''}")
    say("")
    for each in plan.contestants:
        if each.name in counts:
            say(f"{line(each.name)}: {counts[each.name]} trials ({line(each.origin)})")
        else:
            say(f"{line(each.name)}: refused: {line(plan.refused[each.name])}")
    say(
        f"\n{counted(len(counts), 'constraint')}, {counted(trials, 'trial')} in the time of {updates:,} updates "
        f"without a constraint, {request['jobs']} at a time, threads: {request['threads']} each."
    )


def _updates(plan: Plan, contestant: Any) -> int:
    """The updates, without a constraint, whose time a contestant's trials get."""
    from ganlab_benchmark import plan as plans

    return sum(
        task.steps * len(task.seeds) * len(task.reports)
        + (task.tune.steps * len(task.tune.seeds) * len(plans.tuning(task, contestant, 1)) if task.tune else 0)
        for task in plan.training
    )


def print_results(results: Mapping[str, Any], folder: Folder, *, ended: bool, as_json: bool) -> None:
    """Prints the results, and where the files are."""
    from ganlab_benchmark.store import PAGE, RESULTS

    again = f"ganlab benchmark --resume {shlex.quote(shown(folder.path))}"
    if as_json:
        say(json.dumps(results, indent=2, allow_nan=False))
    else:
        _print_tables(results)
    for reference in results["references"]:
        for warning in reference["warnings"]:
            say(f"Warning: {line(warning)}", err=True)
    if not as_json:
        say(f"Results: {shown(folder.path / RESULTS)}\nPage: {shown(folder.path / PAGE)}")
    if not ended:
        say(f"Resume it: {again}", err=True)
    elif any(
        task["status"] in ("failed", "partial")
        for each in results["constraints"].values()
        for task in each["tasks"].values()
    ):
        say(f"Retry what failed: {again} --retry-failed", err=True)


def _print_tables(results: Mapping[str, Any]) -> None:
    """A table for each task, the best constraint first, and the reasons why figures are missing."""
    from rich.table import Table

    from ganlab_benchmark.rows import figure_text, ordered, problems_of, ranks_in, rows_of

    console = table_console(120)
    rows = rows_of(results)
    for name, task in results["tasks"].items():
        _, places = ranks_in(rows, name, task["columns"])
        table = Table(
            box=None, header_style="bold", pad_edge=False, title=cell(line(task["title"])), title_justify="left"
        )
        table.add_column("constraint", overflow="fold")
        table.add_column("rank", justify="right", no_wrap=True)
        for column in task["columns"].values():
            table.add_column(cell(line(column["label"])), justify="right", overflow="fold")
        for n in ordered(rows, places):
            outcome = rows[n].task(name)
            if not outcome["figures"]:
                continue
            label = f"{rows[n].name} (reference)" if rows[n].reference else rows[n].name
            texts = [figure_text(outcome["figures"].get(key)) for key in task["columns"]]
            table.add_row(*(cell(line(text)) for text in (label, places[n] or "-", *texts)))
        if table.row_count:
            console.print(table)
            console.print()
    for row in rows:
        for status, reason, titles in problems_of(results, row):
            say(f"{line(row.name)} ({line(', '.join(titles))}): {status}. {line(reason)}")
