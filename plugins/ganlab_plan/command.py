"""`ganlab plan`: what an experiment needs on TPUs, on GPUs or here, and what limits it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ganlab.commands import BESIDE_GIN, cell, experiment_options, plugin_options, say, table_console
from ganlab.files import line

if TYPE_CHECKING:
    from ganlab_plan import Plan


@click.command("plan")
@experiment_options
@click.option(
    "--topology",
    "topologies",
    required=True,
    multiple=True,
    metavar="NAMES",
    help="Where to train: TPU slices, numbers of GPUs or cpu, for example v5e:8x8,v4:4x4x4,h100:8,cpu. May be given "
    "several times.",
)
@click.option(
    "--efficiency",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.5,
    show_default=True,
    help="The fraction of a TPU's or GPU's peak that products reach.",
)
@click.option(
    "--install",
    is_flag=True,
    help="Install the TPU compiler (600 MB) once into the user's cache folder if it is missing.",
)
@click.option(
    "--no-optimize",
    "optimize",
    flag_value=False,
    default=True,
    help="Compile for TPUs without optimization: much sooner, with the same operations, but other bytes and memory.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@plugin_options(BESIDE_GIN)
@click.pass_context
def plan(
    ctx: click.Context,
    gin_files: tuple[str, ...],
    params: tuple[str, ...],
    topologies: tuple[str, ...],
    efficiency: float,
    install: bool,
    optimize: bool,
    as_json: bool,
    no_plugin: tuple[str, ...],
    plugin_file: Path | None,
) -> None:
    """Projects what an iteration needs on hardware that is not at hand, and names what limits it.

    For TPUs the step is compiled by the TPU's own compiler, for GPUs it is traced and counted; times are these counts
    over the rates of data sheets, and nothing is trained. For cpu some iterations are trained and timed on this
    machine. Exits with 1 if the step cannot be compiled for one of the topologies.

    \b
    ganlab plan methods/sngan --topology cpu,h100:8
    ganlab plan mine.gin --topology v5e:2x2 --install
    """  # noqa: D301 (click's mark for "do not rewrap" is the character that \b stands for)
    if not gin_files:
        raise click.UsageError("Missing experiment: name a FILE, for example 'ganlab plan quickstart'.")
    from ganlab_verify import Source

    from ganlab_plan.places import places
    from ganlab_plan.planner import plan as planned

    where = places(",".join(topologies).split(","))
    source = Source(gin_files, params, no_plugin, str(plugin_file) if plugin_file is not None else None)
    plans = planned(
        source,
        where,
        fraction=efficiency,
        install=install,
        optimize=optimize,
        progress=lambda sentence: say(line(sentence), err=True),
    )
    if as_json:
        say(json.dumps({"efficiency": efficiency, "plans": [one.as_json() for one in plans]}, indent=2))
    else:
        _show(plans)
    if any(one.cost is None for one in plans):
        ctx.exit(1)


def _show(plans: list[Plan]) -> None:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("topology")
    titles = ("replicas", "batch", "memory", "of", "GFLOP", "MB accessed", "MB reduced", "iteration")
    for title in titles:
        table.add_column(title, justify="right")
    table.add_column("limit")
    for one in plans:
        table.add_row(*map(cell, _cells(one)))
    table_console(110).print(table)
    say("\nMemory, operations and bytes are those of an iteration on one replica; batch is that of a replica.")
    for one in plans:
        sentences = " ".join([*(f"Try: {line(text)}" for text in one.advice), *map(line, one.notes)])
        say(f"\n{one.topology}: {sentences}")


def _cells(one: Plan) -> list[str]:
    start = [one.topology, str(one.replicas), f"{one.batch_size / one.replicas:g}"]
    if one.cost is None:
        return [*start, "", _size(one.capacity), "", "", "", "", "cannot be compiled"]
    cost = one.cost
    counts = (cost.flops / 1e9, cost.accessed / 1e6, cost.reduced / 1e6)
    spent = f"{1e3 * one.time.total:.3g} ms" if one.time else ""
    numbers = [f"{value:.4g}" for value in counts]
    return [*start, _size(cost.memory), _size(one.capacity), *numbers, spent, one.limit or ""]


def _size(count: float) -> str:
    return f"{count / 2**30:.3g} GiB" if count >= 2**30 else f"{count / 2**20:.3g} MiB"
