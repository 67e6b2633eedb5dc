"""Commands that applications and plugins add, and qualified names for those whose name is taken.

An application's are entry points of the group `ganlab.commands`: a name, or `GROUP.NAME` for a command of one of
ganlab's groups, and a click command as `module:attribute`. A plugin's come from its hook `ganlab_register_commands`.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import click

from ganlab.cli.command_sources import HOOK, added_by_hook, docstring
from ganlab.errors import PluginError
from ganlab.plugins import manager as plugins
from ganlab.plugins.catalog import Plugin, reason_of
from ganlab.plugins.command_names import COMMAND_NAMES
from ganlab.plugins.discovery import distribution_of, places, plugin_file_in
from ganlab.plugins.import_guard import printing_to_stderr

GROUP = "ganlab.commands"

Value = TypeVar("Value")


@dataclass(frozen=True)
class Offer:
    """A command that an application or a plugin offers.

    Attributes:
        name: The name that it is meant to have.
        plugin: The plugin, or for an entry point its distribution.
        load: Returns the command.
        about: Returns its help text, without executing anything of an application.
    """

    name: str
    plugin: Plugin
    load: Callable[[], click.Command]
    about: Callable[[], str]


@dataclass(frozen=True)
class Added:
    """The commands that applications or plugins add.

    Attributes:
        commands: The offers, by the name to call each by. A command whose name is taken is listed only as
            `PLUGIN.NAME`.
        clashes: An error message for each name that is taken.
        failures: A line for each plugin that failed to add its commands.
        qualified: Every offer by its qualified name, `PLUGIN.NAME`, which always works.
    """

    commands: dict[str, Offer] = field(default_factory=dict)
    clashes: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    qualified: dict[str, Offer] = field(default_factory=dict)

    def find(self, name: str) -> click.Command | None:
        """The command with this name, qualified or not; None if there is none."""
        offer = self.commands.get(name) or self.qualified.get(name)
        return offer.load() if offer else None


def of_applications(own: Collection[str], prefix: str = "") -> Added:
    """The commands that entry points add; nothing is imported.

    Args:
        own: The names of ganlab's own commands, which cannot be replaced.
        prefix: The group of commands with a dot, for example `plugins.`; empty for ganlab itself.
    """
    offers = []
    for point in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda point: point.name):
        group, dot, name = point.name.rpartition(".")
        if group + dot == prefix:
            distribution, version = distribution_of(point)
            plugin = Plugin(distribution, distribution, version)
            load = functools.partial(_load_point, point, plugin)
            offers.append(Offer(name, plugin, load, functools.partial(docstring, point.value)))
    return _settled(offers, own, prefix)


def of_hooks(loaded: plugins.Plugins, own: Collection[str]) -> Added:
    """Asks the plugins for their commands, whose names cannot replace the given ones."""
    rows = {row.name: row for row in loaded.rows if row.status == "loaded"}
    offers, failures = [], []
    for name, call in loaded.calls(HOOK):
        group = click.Group("ganlab")
        try:
            with printing_to_stderr():
                call(cli=group)
        except (Exception, SystemExit) as error:
            failures.append(f"Plugin {name!r} failed in {HOOK}: {reason_of(error)}")
        for called, command in group.commands.items():
            offers.append(Offer(called, rows[name], _giving(command), _giving(command.help or "")))
    settled = _settled(offers, own)
    settled.failures.extend(failures)
    return settled


def of_both(loaded: plugins.Plugins, own: Collection[str]) -> Added:
    """The commands that applications add, and those of plugins' hooks."""
    first = of_applications(own)
    hooks = of_hooks(loaded, {*own, *first.commands})
    return Added(
        first.commands | hooks.commands,
        hooks.clashes | first.clashes,
        hooks.failures,
        hooks.qualified | first.qualified,
    )


def listed_in_sources(own: Collection[str]) -> dict[str, str]:
    """The commands that hooks add, with their help texts, for `ganlab --help`: read from source code, not executed."""
    local = plugin_file_in(Path())
    offers, unread = [], {}
    for place in places(local=local.resolve() if local else None):
        if place.disabled:
            continue
        commands = added_by_hook(place.source())
        if commands is None:
            unread[f"({place.plugin.name})"] = "Adds commands; 'ganlab plugins' lists them."
        for name, about in (commands or {}).items():
            offers.append(Offer(name, place.plugin, _giving(click.Command(name)), _giving(about)))
    return {name: offer.about() for name, offer in sorted(_settled(offers, own).commands.items())} | unread


def command_names() -> list[str]:
    """The names of all commands of ganlab and of the installed applications: a plugin's needs another one."""
    return [*COMMAND_NAMES, *of_applications(COMMAND_NAMES).commands]


def in_use() -> plugins.Plugins:
    """The plugins in use; if none are set yet, those installed and the `ganlab_plugins.py` of this folder."""
    local = plugin_file_in(Path())
    return plugins.current(local.resolve() if local else None)


def summary(help_text: str, letters: int = 80) -> str:
    """The first sentence of a command's help."""
    return click.Command(None, help=help_text).get_short_help_str(letters)


def _giving(value: Value) -> Callable[[], Value]:
    return lambda: value


def _load_point(point: importlib.metadata.EntryPoint, plugin: Plugin) -> click.Command:
    try:
        with printing_to_stderr():
            command = point.load()
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"The command {point.name!r} of {plugin.origin} cannot be loaded: {reason_of(error)}"
        ) from error
    if not isinstance(command, click.Command):
        raise PluginError(
            f"The command {point.name!r} of {plugin.origin} is {point.value}, of type {type(command).__name__}; it "
            "must be a click command."
        )
    return command


def _settled(offers: Iterable[Offer], own: Collection[str], prefix: str = "") -> Added:
    result = Added()
    by_name: dict[str, list[Offer]] = {}
    for offer in offers:
        by_name.setdefault(offer.name, []).append(offer)
        result.qualified[f"{offer.plugin.qualifier}.{offer.name}"] = offer
    ganlab = f"ganlab {prefix}".replace(".", " ")
    for called, several in by_name.items():
        if called not in own and len(several) == 1:
            result.commands[called] = several[0]
            continue
        result.commands.update({f"{offer.plugin.qualifier}.{called}": offer for offer in several})
        by = " and ".join(f"{offer.plugin.name!r} of {offer.plugin.origin}" for offer in several)
        instead = " or ".join(f"'{ganlab}{offer.plugin.qualifier}.{called}'" for offer in several)
        what = f"a command {called!r}"
        if called in own:
            s, one = ("s", "") if len(several) > 1 else ("", "s")
            result.clashes[called] = (
                f"The plugin{s} {by} add{one} {what}, but '{ganlab}{called}' is another command. Call {instead}."
            )
        else:
            result.clashes[called] = f"Several plugins add {what}: {by}. Call {instead}."
    return result
