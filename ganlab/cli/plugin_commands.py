"""Commands that plugins add: their names, their plugins, and qualified names for those whose name is taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click

from ganlab.plugins import manager as plugins
from ganlab.plugins.catalog import Plugin, reason_of
from ganlab.plugins.discovery import plugin_file_in
from ganlab.plugins.import_guard import printing_to_stderr

HOOK = "ganlab_register_commands"


@dataclass(frozen=True)
class Added:
    """The commands that plugins add.

    Attributes:
        commands: The command and its plugin, by the name to call it by. A command whose name is taken is listed only
            as `PLUGIN.NAME`.
        clashes: An error message for each name that is taken.
        failures: A line for each plugin that failed to add its commands.
        qualified: Every command by its qualified name, `PLUGIN.NAME`, which always works.
    """

    commands: dict[str, tuple[click.Command, Plugin]] = field(default_factory=dict)
    clashes: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    qualified: dict[str, click.Command] = field(default_factory=dict)

    def find(self, name: str) -> click.Command | None:
        """The command with this name, qualified or not; None if there is none."""
        return self.commands[name][0] if name in self.commands else self.qualified.get(name)


def in_use() -> plugins.Plugins:
    """The plugins in use; if none are set yet, those installed and the `ganlab_plugins.py` of this folder."""
    if plugins._current is None:
        local = plugin_file_in(Path())
        plugins.use(plugins.discover(local=local.resolve() if local else None))
    return plugins.current()


def added(found: plugins.Plugins, own: Iterable[str]) -> Added:
    """Asks the plugins for their commands.

    Args:
        found: The plugins.
        own: The names of ganlab's own commands, which cannot be replaced.
    """
    result = Added()
    rows = {row.name: row for row in found.rows if row.status == "loaded"}
    offered: dict[str, list[tuple[click.Command, Plugin]]] = {}
    for name, call in found.calls(HOOK):
        group = click.Group("ganlab")
        try:
            with printing_to_stderr():
                call(cli=group)
        except (Exception, SystemExit) as error:
            result.failures.append(f"Plugin {name!r} failed in {HOOK}: {reason_of(error)}")
        for called, command in group.commands.items():
            offered.setdefault(called, []).append((command, rows[name]))
            result.qualified[f"{rows[name].qualifier}.{called}"] = command
    _settle(result, offered, set(own))
    return result


def _settle(result: Added, offered: Mapping[str, list[tuple[click.Command, Plugin]]], own: set[str]) -> None:
    for called, offers in offered.items():
        if called not in own and len(offers) == 1:
            result.commands[called] = offers[0]
            continue
        result.commands.update({f"{plugin.qualifier}.{called}": (command, plugin) for command, plugin in offers})
        by = " and ".join(f"{plugin.name!r} of {plugin.origin}" for _, plugin in offers)
        instead = " or ".join(f"'ganlab {plugin.qualifier}.{called}'" for _, plugin in offers)
        what = f"a command {called!r}"
        if called in own:
            result.clashes[called] = (
                f"The plugin{'s' if len(offers) > 1 else ''} {by} add{'' if len(offers) > 1 else 's'} {what}, but "
                f"'ganlab {called}' remains ganlab's own command. Call {instead}."
            )
        else:
            result.clashes[called] = f"Several plugins add {what}: {by}. Call {instead}."


def summary(command: click.Command) -> str:
    """The first sentence of a command's help."""
    return command.get_short_help_str(80)
