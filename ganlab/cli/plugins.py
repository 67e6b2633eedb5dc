"""`ganlab plugins`: lists all components and unusable plugins; also `new` and `check`."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ganlab.cli import plugin_commands
from ganlab.cli.messages import say, say_json
from ganlab.cli.options import HERE, plugin_options
from ganlab.cli.subcommands import CommandGroup
from ganlab.cli.tables import cell, table_console
from ganlab.plugins.discovery import plugin_file_in
from ganlab.plugins.manager import KINDS, Component, Plugin, Plugins
from ganlab.runs.experiment_source import use_plugins


@click.group("plugins", cls=CommandGroup, prefix="plugins.", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON, including tracebacks.")
@plugin_options(HERE)
@click.pass_context
def plugins(ctx: click.Context, as_json: bool, no_plugin: tuple[str, ...], plugin_file: Path | None) -> None:
    """Lists the components that experiment files can name, and the plugins they come from.

    Unusable plugins are listed too; --debug (before the command) shows the tracebacks of broken ones.
    """
    if ctx.invoked_subcommand is not None:
        if as_json or no_plugin or plugin_file:
            raise click.UsageError(f"Put options of 'ganlab plugins {ctx.invoked_subcommand}' after its name.", ctx)
        return
    loaded = use_plugins(no_plugin, plugin_file or plugin_file_in(Path()))
    added = _commands(loaded)
    for failure in added.failures:
        say(f"Warning: {failure}", err=True)
    if as_json:
        say_json(_as_data(loaded, added))
        return
    _print_table(loaded, added)
    if ctx.find_root().params.get("debug"):
        for row in loaded.rows:
            if row.error:
                say(f"\n{row.name}:\n{row.error}")


def _commands(loaded: Plugins) -> plugin_commands.Added:
    from ganlab.cli import COMMANDS

    return plugin_commands.of_both(loaded, COMMANDS)


def _as_data(loaded: Plugins, added: plugin_commands.Added) -> dict[str, Any]:
    return {
        "components": [
            {
                "kind": component.kind,
                "name": component.name,
                "summary": component.summary,
                "plugin": component.plugin.name,
                "distribution": component.plugin.distribution,
                "version": component.plugin.version,
                "status": _status(loaded, component),
            }
            for component in loaded.components.values()
        ],
        "commands": [
            {"name": name, "summary": plugin_commands.summary(offer.about()), "plugin": offer.plugin.name}
            for name, offer in added.commands.items()
        ],
        "plugins": [asdict(row) for row in loaded.rows],
        "clashes": [*loaded.clashes.values(), *added.clashes.values()],
    }


def _print_table(loaded: Plugins, added: plugin_commands.Added) -> None:
    from rich.table import Table

    console = table_console()
    table = Table(box=None, header_style="bold", pad_edge=False)
    unused = [row for row in loaded.rows if row.status != "loaded"]
    names = [c.name for c in loaded.components.values()] + [row.name for row in unused] + [*added.commands]
    table.add_column("kind", no_wrap=True, min_width=max(map(len, KINDS)))
    table.add_column("name", no_wrap=True, min_width=max(map(len, names), default=4))
    table.add_column("summary", overflow="fold", ratio=1)
    table.add_column("from", overflow="fold", max_width=20)
    table.add_column(
        "status",
        no_wrap=True,
        min_width=len("incompatible" if any(row.status == "incompatible" for row in unused) else "disabled"),
    )
    for kind in KINDS:
        for component in sorted((c for c in loaded.components.values() if c.kind == kind), key=lambda c: c.name):
            clash = loaded.clashes.get((kind, component.name))
            about = (clash, "") if clash else (component.summary, _origin(component.plugin))
            table.add_row(*map(cell, (kind, component.name, *about, _status(loaded, component))))
    for name, offer in sorted(added.commands.items()):
        summary = plugin_commands.summary(offer.about())
        table.add_row(*map(cell, ("command", name, summary, _origin(offer.plugin), "loaded")))
    for name, clash in sorted(added.clashes.items()):
        table.add_row(*map(cell, ("command", name, clash, "", "clash")))
    for row in unused:
        table.add_row(*map(cell, ("plugin", row.name, row.reason if row.error else "", _origin(row), row.status)))
    console.print(table)


def _status(loaded: Plugins, component: Component) -> str:
    return "clash" if (component.kind, component.name) in loaded.clashes else component.plugin.status


def _origin(plugin: Plugin) -> str:
    path = Path(plugin.distribution)
    distribution = os.path.relpath(path) if path.is_absolute() else plugin.distribution
    return f"{distribution} {plugin.version}".rstrip()
