"""`ganlab plugins`: lists all components and unusable plugins; also `new` and `check`."""

from __future__ import annotations

import inspect
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ganlab.cli import plugin_commands
from ganlab.cli.messages import say, say_json
from ganlab.cli.options import HERE, plugin_options
from ganlab.cli.subcommands import CommandGroup
from ganlab.interfaces import hookspecs
from ganlab.plugins.discovery import plugin_file_in
from ganlab.plugins.manager import KINDS, Component, Plugin, Plugins
from ganlab.runs.experiment_source import use_plugins
from ganlab.support.terminal import line
from ganlab.version import DISTRIBUTION


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
    _print_page(loaded, added)
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


def _print_page(loaded: Plugins, added: plugin_commands.Added) -> None:
    """Prints the components by kind, the commands and what is not loaded: a name and a line each."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for kind in KINDS:
        about = (inspect.getdoc(getattr(hookspecs, f"ganlab_{kind}")) or "").partition(", each")[0]
        title = kind if about.lower() == kind else f"{kind}: {about[:1].lower()}{about[1:]}"
        sections[title] = [
            (name, loaded.clashes.get((kind, name)) or f"{one.summary}{_origin(one.plugin)}")
            for (of, name), one in sorted(loaded.components.items())
            if of == kind
        ]
    commands = {
        name: f"{plugin_commands.summary(each.about())}{_origin(each.plugin)}" for name, each in added.commands.items()
    }
    sections["commands"] = sorted({**added.clashes, **commands}.items())
    unused = [row for row in loaded.rows if row.status != "loaded"]
    sections["not loaded"] = [
        (row.name, f"{row.status}{f': {row.reason}' if row.error else ''}{_origin(row)}") for row in unused
    ]
    width = max((len(name) for rows in sections.values() for name, _ in rows), default=0)
    for title, rows in sections.items():
        if rows:
            say("\n".join([line(title), *(line(f"  {name:{width}}  {text}") for name, text in rows), ""]))
    say("Each in full: ganlab config explain NAME")


def _status(loaded: Plugins, component: Component) -> str:
    return "clash" if (component.kind, component.name) in loaded.clashes else component.plugin.status


def _origin(plugin: Plugin) -> str:
    """The distribution or file of a plugin that is not ganlab's own."""
    path = Path(plugin.distribution)
    distribution = os.path.relpath(path) if path.is_absolute() else plugin.distribution
    return "" if plugin.distribution == DISTRIBUTION else f" ({distribution} {plugin.version}".rstrip() + ")"
