"""`ganlab plugins`: every component that a file can name, and every plugin that could not be used."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ganlab.cli.options import plugin_options, use_plugins
from ganlab.plugins import KINDS, Plugin, Plugins

# Where there is no terminal to ask: wide enough for every column, narrow enough for a page.
_WIDTH = 100


@click.command("plugins")
@click.option("--json", "as_json", is_flag=True, help="Print everything, tracebacks too, as JSON.")
@plugin_options
@click.pass_context
def plugins(ctx: click.Context, as_json: bool, no_plugin: tuple[str, ...], plugin_file: Path | None) -> None:
    """Lists the components that experiment files can name, and the plugins they come from.

    Broken and disabled plugins are listed too; --debug (before the command) shows the tracebacks of broken ones.
    """
    local = Path("ganlab_plugins.py")
    found = use_plugins(no_plugin, plugin_file or (local if local.is_file() else None))
    if as_json:
        click.echo(json.dumps(_as_data(found), indent=2))
        return
    _print_table(found)
    if ctx.find_root().params.get("debug"):
        for row in found.rows:
            if row.error:
                click.echo(f"\n{row.name}:\n{row.error}")


def _as_data(found: Plugins) -> dict[str, Any]:
    return {
        "components": [
            {
                "kind": component.kind,
                "name": component.name,
                "summary": component.summary,
                "plugin": component.plugin.name,
                "distribution": component.plugin.distribution,
                "version": component.plugin.version,
                "status": component.plugin.status,
            }
            for component in found.components.values()
        ],
        "plugins": [asdict(row) for row in found.rows],
        "clashes": found.clashes,
    }


def _print_table(found: Plugins) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDTH
    table = Table(box=None, header_style="bold", pad_edge=False)
    unused = [row for row in found.rows if row.status != "loaded"]
    names = [component.name for component in found.components.values()] + [row.name for row in unused]
    table.add_column("kind", no_wrap=True, min_width=max(map(len, KINDS)))
    table.add_column("name", no_wrap=True, min_width=max(map(len, names), default=4))
    table.add_column("summary", overflow="fold", ratio=1)
    table.add_column("from", overflow="fold", max_width=20)
    table.add_column("status", no_wrap=True, min_width=len("disabled"))
    for kind in KINDS:
        for component in sorted((c for c in found.components.values() if c.kind == kind), key=lambda c: c.name):
            table.add_row(*map(_plain, (kind, component.name, component.summary, *_origin(component.plugin))))
    for row in unused:
        table.add_row(*map(_plain, ("plugin", row.name, row.reason if row.error else "", *_origin(row))))
    for clash in found.clashes:
        table.add_row("plugin", _plain(clash.split()[3]), _plain(clash), "", "clash")
    console.print(table)


def _origin(plugin: Plugin) -> tuple[str, str]:
    path = Path(plugin.distribution)
    distribution = os.path.relpath(path) if path.is_absolute() else plugin.distribution
    return f"{distribution} {plugin.version}".rstrip(), plugin.status


def _plain(text: str) -> Any:
    from rich.text import Text

    return Text(text)  # not markup: a summary may have brackets
