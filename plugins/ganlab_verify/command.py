"""`ganlab verify`: checks that an experiment trains the same on any hardware, with the gradients of its losses."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ganlab.commands import BESIDE_GIN, cell, experiment_options, in_time, plugin_options, say, table_console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ganlab_verify import Options, Row, Source

# Those of ganlab_verify, whose import would take half the time of every `ganlab --help`.
CHECKS = ("replicas", "graph", "gradients", "microbatches", "resume", "tpu")

_FAILED = 1
# Checks whose figure is shown without a limit: `resume` allows no difference, and the figure of `tpu` is a share.
_ALONE = ("resume", "tpu")
_STYLES = {"passed": "green", "refused": "green", "failed": "bold red"}


def _counts(ctx: click.Context, parameter: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        counts = tuple(sorted({int(item) for item in value.split(",")}))
    except ValueError:
        counts = ()
    if not counts or not all(1 <= count <= 64 for count in counts):
        raise click.BadParameter(f"{value!r} must be whole numbers from 1 to 64, for example 1,2,4.")
    return counts


def _checks(ctx: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    chosen = [item.strip() for item in value.split(",")]
    unknown = [name for name in chosen if name not in CHECKS]
    if unknown:
        raise click.BadParameter(f"Unknown check {unknown[0]!r}: choose from {','.join(CHECKS)}.")
    return tuple(name for name in CHECKS if name in chosen)


@click.command("verify")
@experiment_options
@click.option("--all", "every", is_flag=True, help="Verify every shipped experiment outside gin/paper and gin/methods.")
@click.option(
    "--replicas",
    default="1,2,4",
    show_default=True,
    callback=_counts,
    metavar="COUNTS",
    help="Numbers of replicas, each compared with one device.",
)
@click.option(
    "--iterations", type=click.IntRange(2, 1000), default=5, show_default=True, help="Iterations of every training run."
)
@click.option(
    "--checks",
    default=",".join(CHECKS),
    show_default=True,
    callback=_checks,
    metavar="NAMES",
    help="The checks to run.",
)
@click.option(
    "--topology",
    default="v5e:2x2",
    show_default=True,
    help="The TPU that the check tpu compiles for, for example v4:2x2x1.",
)
@click.option(
    "--install",
    is_flag=True,
    help="Install the TPU compiler (600 MB) once into the user's cache folder. Without this option the check tpu is "
    "skipped if the compiler is not installed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@plugin_options(BESIDE_GIN)
@click.pass_context
def verify(
    ctx: click.Context,
    gin_files: tuple[str, ...],
    params: tuple[str, ...],
    every: bool,
    replicas: tuple[int, ...],
    iterations: int,
    checks: tuple[str, ...],
    topology: str,
    install: bool,
    as_json: bool,
    no_plugin: tuple[str, ...],
    plugin_file: Path | None,
) -> None:
    """Proves that an experiment's numbers do not depend on where it runs, and that its gradients match its losses.

    Needs neither several devices nor a TPU: replicas are parts of this machine's CPU. Exits with 0 if every check
    passed and with 1 otherwise; a check that could not run has not passed. Microbatches may be refused, with the name
    of what needs the whole batch. A check that is skipped because its compiler is not installed does not count, unless
    --checks names it.

    \b
    ganlab verify quickstart
    ganlab verify mine.gin --checks replicas,graph --replicas 1,2
    ganlab verify --all
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    if bool(gin_files) == every:
        raise click.UsageError(
            "Missing experiment: name a FILE, for example 'ganlab verify quickstart', or --all alone."
        )
    file = str(plugin_file) if plugin_file is not None else None
    from ganlab_verify import Options, Source, shipped_experiments, started

    groups = [(name,) for name in shipped_experiments()] if every else [gin_files]
    sources = [Source(group, params, no_plugin, file) for group in groups]
    options = Options(replicas=replicas, iterations=iterations, topology=topology, install=install)
    with started(sources, checks, options) as pending:
        results = _print_as_checked(sources, checks, pending, every=every, as_json=as_json)
    if as_json:
        say(json.dumps(_as_data(sources, results, options), indent=2))
    asked_for = ctx.get_parameter_source("checks") is not ParameterSource.DEFAULT
    statuses = {row.status for rows in results for row in rows}
    if not statuses <= {"passed", "refused", *(() if asked_for else ("skipped",))}:
        ctx.exit(_FAILED)


def _print_as_checked(
    sources: Sequence[Source],
    checks: Sequence[str],
    pending: Sequence[Sequence[Future[Row]]],
    *,
    every: bool,
    as_json: bool,
) -> list[list[Row]]:
    """Waits for the rows and prints each as it comes, unless JSON is requested."""
    from rich.console import Console

    console, errors = table_console(), Console(stderr=True)
    results: list[list[Row]] = []
    began, total = time.monotonic(), sum(map(len, pending))
    for source, futures in zip(sources, pending, strict=True):
        rows: list[Row] = []
        for check, future in zip(checks, futures, strict=True):
            with errors.status(f"{_name(source)}: {check}{_left(pending, total, began)} ..."):
                rows.append(future.result())
            if not as_json and not every:
                _print_rows(console, rows[-1:], header=len(rows) == 1)
        results.append(rows)
        if not as_json and every:
            console.print(_overview([_name(source)], checks, [rows], header=len(results) == 1))
    if not as_json and every:
        for name, row in _unproven(sources, results):
            console.print(cell(f"\n{name}, {row.check} {row.status}: {row.detail}"))
    return results


def _left(pending: Sequence[Sequence[Future[Row]]], total: int, began: float) -> str:
    """How many checks are done, and the time that the others need if they take as long."""
    done = sum(future.done() for futures in pending for future in futures)
    if not done:
        return f" ({total} checks)" if total > 1 else ""
    left = in_time((time.monotonic() - began) * (total - done) / done, units=1)
    return f" ({done} of {total} checks done, about {left} left)"


def _print_rows(console: Console, rows: Sequence[Row], *, header: bool) -> None:
    table = _table(header)
    for title, width in (("check", 12), ("status", 7), ("figure", 7), ("limit", 7)):
        table.add_column(title, width=width, no_wrap=True)
    table.add_column("", ratio=1)
    for row in rows:
        table.add_row(row.check, _colored(row.status), _number(row.figure), _number(row.limit), cell(row.detail))
    console.print(table)


def _overview(names: Sequence[str], checks: Sequence[str], results: Sequence[Sequence[Row]], *, header: bool) -> Table:
    table = _table(header)
    table.add_column("experiment", overflow="fold", ratio=1)
    for check in checks:
        table.add_column(check, width=len("skipped" if check in _ALONE else "5.2e-5 < 1e-3"), no_wrap=True)
    for name, rows in zip(names, results, strict=True):
        table.add_row(cell(name), *(_cell(row) for row in rows))
    return table


def _cell(row: Row) -> Any:
    if row.status != "passed" or not row.limit:
        return _colored(row.status)
    if row.check in _ALONE:
        return _number(row.figure)
    # Short, so that six checks fit into a hundred columns.
    return f"{_number(row.figure)} < {row.limit:.0e}".replace("e-0", "e-")


def _table(header: bool) -> Table:
    from rich.table import Table

    return Table(box=None, header_style="bold", pad_edge=False, show_header=header, expand=True)


def _unproven(sources: Sequence[Source], results: Sequence[Sequence[Row]]) -> Iterator[tuple[str, Row]]:
    """The rows to explain: neither passed nor refused. A check is always skipped for one reason, given once."""
    skipped = set()
    for source, rows in zip(sources, results, strict=True):
        for row in rows:
            if row.status not in ("passed", "refused") and row.check not in skipped:
                yield _name(source), row
            if row.status == "skipped":
                skipped.add(row.check)


def _as_data(sources: Sequence[Source], results: Sequence[Sequence[Row]], options: Options) -> Any:
    from ganlab.telemetry import to_json

    experiments = [
        {"experiment": _name(source), "source": asdict(source), "rows": [asdict(row) for row in rows]}
        for source, rows in zip(sources, results, strict=True)
    ]
    checked = {name: value for name, value in asdict(options).items() if name != "install"}
    statuses = {row.status for rows in results for row in rows}
    passed = statuses <= {"passed", "refused", "skipped"}
    return to_json({"passed": passed, "options": checked, "experiments": experiments})


def _name(source: Source) -> str:
    return source.gin_files[-1].removesuffix(".gin")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}" if value else "0"


def _colored(status: str) -> Any:
    from rich.text import Text

    return Text(status, style=_STYLES.get(status, "yellow"))
