"""Loads plugins, keeps broken ones as rows, and provides the components that they offer."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pluggy

from ganlab.errors import PluginError, nearest
from ganlab.interfaces import hookspecs
from ganlab.plugins import validation
from ganlab.plugins.catalog import KINDS, UNUSABLE, Component, Plugin, reason_of
from ganlab.plugins.discovery import GROUP, LOCAL_MODULE, allowed, load_file, places
from ganlab.plugins.import_guard import watched
from ganlab.plugins.plugin_errors import where
from ganlab.plugins.recipes import Factory
from ganlab.support import several

__all__ = [
    "GROUP",
    "KINDS",
    "LOCAL_MODULE",
    "UNUSABLE",
    "Component",
    "Plugin",
    "Plugins",
    "component",
    "current",
    "discover",
    "use",
    "use_plugin_file",
    "using",
]


@dataclass
class Plugins:
    """The plugins of this process, loaded one by one so that none takes another down.

    Attributes:
        rows: Every plugin that was found, with its status.
        components: The components that loaded plugins offer.
        clashes: By kind and name, a message for every component that several plugins offer; `components` then holds
            the one that was found first.
    """

    rows: list[Plugin] = field(default_factory=list)
    components: dict[tuple[str, str], Component] = field(default_factory=dict)
    clashes: dict[tuple[str, str], str] = field(default_factory=dict)
    _known_as: dict[str, list[str]] = field(default_factory=dict)
    _offering: dict[tuple[str, str], list[Plugin]] = field(default_factory=dict)
    _manager: pluggy.PluginManager = field(default_factory=lambda: pluggy.PluginManager("ganlab"))

    def __post_init__(self) -> None:
        self._manager.add_hookspecs(hookspecs)

    def add(self, plugin: Plugin, load: Callable[[], Any]) -> None:
        """Loads one plugin and adds its components; a plugin that fails in any way becomes a row with the reason."""
        began, imported = time.perf_counter(), "tensorflow" in sys.modules
        try:
            with watched(plugin.name, plugin.origin):
                loaded = load()
                components = self._register(plugin, loaded)
        except validation.OtherContractError as error:
            self.rows.append(replace(plugin, status="incompatible", error=str(error)))
            return
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            trace, reason = traceback.format_exc(), reason_of(error)
            self.rows.append(replace(plugin, status="broken", error=trace, message=reason))
            return
        of = f"Plugin {plugin.name!r} of {plugin.origin}"
        complaints = tuple(f"{of} {complaint}" for complaint in validation.unmarked(loaded))
        for complaint in complaints:
            warnings.warn(complaint, stacklevel=2)
        seconds = time.perf_counter() - began if "tensorflow" in sys.modules and not imported else 0.0
        self.rows.append(replace(plugin, warnings=complaints, tensorflow_seconds=seconds))
        for component in components:
            self._take(component)
        for selector, words in validation.known_as(loaded):
            for word in words:
                self._known_as.setdefault(_plain(word), []).append(selector)

    def known_as(self, name: str) -> list[str]:
        """The components that people also know by this name, as plugins declare in `GANLAB_KNOWN_AS`."""
        kind, _, last = _plain(name).rpartition(".")
        found = [each for each in self._known_as.get(last, []) if tuple(each.split(".")) in self.components]
        return [each for each in found if each.startswith(f"{kind}.")] or found

    def _register(self, plugin: Plugin, loaded: Any) -> list[Component]:
        validation.check_declared(getattr(loaded, validation.DECLARATION, None))
        probe = pluggy.PluginManager("ganlab")
        probe.add_hookspecs(hookspecs)
        validation.check_hooks(probe, loaded)
        components = []
        for kind in KINDS:
            for implementation in getattr(probe.hook, f"ganlab_{kind}").get_hookimpls():
                offered = validation.offers(kind, implementation)
                components += [Component(kind, name, Factory(kind, name, make), plugin) for name, make in offered]
        if self._manager.has_plugin(plugin.name):
            other = next(row for row in self.rows if row.name == plugin.name)
            raise PluginError(f"{other.origin} also has a plugin of this name; uninstall one of them")
        self._manager.register(loaded, name=plugin.name)
        return components

    def _take(self, component: Component) -> None:
        key = (component.kind, component.name)
        first = self.components.setdefault(key, component)
        offering = self._offering.setdefault(key, [])
        offering.append(component.plugin)
        if len(offering) < 2:
            return
        for each in (first, component):
            qualified = _qualified(each)
            self.components[qualified.kind, qualified.name] = qualified
        count = {2: "Two", 3: "Three"}.get(len(offering), str(len(offering)))
        *most, last = [f"{plugin.name!r} of {plugin.origin}" for plugin in offering]
        names = [f"{component.kind}.{plugin.qualifier}.{component.name}" for plugin in offering]
        self.clashes[key] = (
            f"{count} plugins offer {'.'.join(key)}: {', '.join(most)} and {last}. Disable "
            f"{'one of them' if len(offering) == 2 else 'all but one'}: "
            f"{' or '.join(f'--no-plugin {plugin.name}' for plugin in offering)}. Or write "
            f"{' or '.join(names)}."
        )

    def unqualified(self, kind: str, name: str) -> str:
        """The plain name of a component written with its plugin, `PLUGIN.NAME`, if only that plugin offers it.

        So a qualified name stays valid after the other plugin is uninstalled. Empty for any other name.
        """
        qualifier, _, plain = name.rpartition(".")
        offered = self.components.get((kind, plain))
        return plain if qualifier and offered is not None and offered.plugin.qualifier == qualifier else ""

    def check(self, strict: bool | None = None) -> None:
        """If strict, raises an error when anything is wrong with any plugin, used or not.

        Args:
            strict: Whether to be strict; default: whether `GANLAB_STRICT_PLUGINS` is set.

        Raises:
            PluginError: Strict, and there is a name clash, or a plugin is broken, incompatible or has an unmarked hook.
        """
        strict = os.environ.get("GANLAB_STRICT_PLUGINS", "") not in ("", "0") if strict is None else strict
        if not strict:
            return
        if self.clashes:
            raise PluginError("\n".join(self.clashes.values()))
        for row in self.rows:
            if row.status in UNUSABLE:
                raise PluginError(
                    f"Plugin {row.name!r} of {row.origin} is {row.status}: {row.reason.rstrip('.')}. "
                    f"Fix it, disable it with --no-plugin {row.name}, or unset GANLAB_STRICT_PLUGINS."
                )
            if row.warnings:
                raise PluginError("\n".join(row.warnings))

    def component(self, kind: str, name: str) -> Component:
        """The component of this kind and name.

        Raises:
            PluginError: The component is unknown, or several plugins offer it. The message suggests the nearest name
                and lists plugins that failed to load.
        """
        if not isinstance(kind, str) or not isinstance(name, str):
            raise PluginError(
                f"A component has a kind and a name, for example 'losses', 'hinge'; not {kind!r}, {name!r}."
            )
        if kind not in KINDS:
            raise PluginError(f"Unknown kind of component {kind!r}.{nearest(kind, KINDS)} Kinds: {', '.join(KINDS)}.")
        if (kind, name) in self.clashes:
            raise PluginError(self.clashes[kind, name])
        if (kind, name) in self.components:
            return self.components[kind, name]
        if plain := self.unqualified(kind, name):
            return self.component(kind, plain)
        names = sorted(n for k, n in self.components if k == kind)
        elsewhere = [f"{k}.{n}" for k, n in self.components if n == name]
        near = nearest(f"{kind}.{name}", [f"{kind}.{n}" for n in names])
        if meant := elsewhere[:1] or self.known_as(f"{kind}.{name}"):
            near = f" Did you mean {' or '.join(map(repr, meant))}?"
        known = ", ".join(names) or "none"
        first, last = self.absent(broken=True), self.absent(broken=False)
        raise PluginError(f"Unknown component {kind}.{name}.{near}{first} Known {kind}: {known}.{last}")

    def absent(self, *, broken: bool | None = None) -> str:
        """A sentence on plugins that were found but not loaded, all or only broken or unbroken ones; perhaps empty."""
        missing = [
            f"{row.name} ({row.status}{': ' + row.reason if row.error else ''})"
            for row in self.rows
            if row.status != "loaded" and broken in (None, bool(row.error))
        ]
        return f" Plugins not loaded: {', '.join(missing)}; see 'ganlab plugins'." if missing else ""

    def calls(self, hook: str) -> Iterator[tuple[str, Callable[..., Any]]]:
        """Yields the plugins that implement a hook: each name, and a function that calls the hook."""
        for implementation in getattr(self._manager.hook, hook).get_hookimpls():
            yield implementation.plugin_name, functools.partial(_call, implementation)

    def loaded(self, name: str) -> Any:
        """The module or object of the plugin with this name, or None."""
        return self._manager.get_plugin(name)


def failed(name: str, hook: str, error: BaseException) -> str:
    """Returns the message for a plugin that failed in a notification hook."""
    return f"Plugin {name!r} failed in {hook}: {error!r}{where(error)}"


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


def _call(implementation: pluggy.HookImpl, /, **arguments: Any) -> Any:
    return implementation.function(**{name: arguments[name] for name in implementation.argnames})


def _qualified(component: Component) -> Component:
    """The same component under its plugin's name: `PLUGIN.NAME`."""
    name = f"{component.plugin.qualifier}.{component.name}"
    return replace(component, name=name, factory=Factory(component.kind, name, component.factory.make))


def discover(*, deny: Sequence[str] = (), local: Path | None = None) -> Plugins:
    """Finds and loads plugins: installed ones by entry point, then a local file.

    Args:
        deny: Names of plugins to leave out. The environment variable `GANLAB_PLUGINS=a,b` lists the only ones to load.
        local: A `ganlab_plugins.py`, a plugin without packaging; None for none.

    Returns:
        The plugins, broken and disabled ones included as rows.

    Raises:
        PluginError: `deny` or `GANLAB_PLUGINS` names an unknown plugin.
    """
    plugins = Plugins()
    for place in places(deny=deny, local=local):
        if place.disabled:
            plugins.rows.append(replace(place.plugin, status="disabled"))
        else:
            plugins.add(place.plugin, place.load)
    return plugins


_current: Plugins | None = None


def current(local: Path | None = None) -> Plugins:
    """The plugins in use; at the first call they are discovered, with a local plugin file."""
    return use(discover(local=local)) if _current is None else _current


def use(plugins: Plugins) -> Plugins:
    """Makes these the plugins in use."""
    global _current
    _current = plugins
    return plugins


@contextlib.contextmanager
def using(plugins: Plugins | None = None) -> Iterator[None]:
    """Context manager: these are the plugins in use; None for those to be discovered when they are needed."""
    global _current
    before, _current = _current, plugins
    try:
        yield
    finally:
        _current = before


def use_plugin_file(path: str | os.PathLike[str]) -> None:
    """Loads a plugin without packaging, as the command line does with the `ganlab_plugins.py` beside a file.

    Args:
        path: A Python file with ganlab hooks. It replaces one that was loaded this way before, and is replaced by the
            `ganlab_plugins.py` beside an experiment's file that `ganlab.load` or `ganlab.train` reads.

    Raises:
        PluginError: The file is missing, or the plugin is broken.
    """
    local = several.path(path, "path").resolve()
    if not local.is_file():
        raise PluginError(f"{path} is not a file. Give the path of a Python file with ganlab hooks.")
    plugins = discover(local=local)
    _check_last(plugins, path)
    use(plugins)


def add_plugin_file(path: Path) -> None:
    """Adds a plugin file to the plugins in use, unless `GANLAB_PLUGINS` excludes it."""
    plugins, allow = current(), allowed()
    if not allow or LOCAL_MODULE in allow:
        plugins.add(Plugin(LOCAL_MODULE, str(path), ""), lambda: load_file(path))
        _check_last(plugins, path)


def _check_last(plugins: Plugins, path: str | os.PathLike[str]) -> None:
    row = plugins.rows[-1]
    if row.status in UNUSABLE:
        raise PluginError(f"{path} cannot be used: {row.reason}")


def component(kind: str, name: str) -> Factory:
    """A registered factory: `ganlab.component("losses", "hinge")()`.

    Args:
        kind: The kind, for example `constraints`; `ganlab plugins` lists all.
        name: The component's name.

    Returns:
        The factory, with the keyword parameters of the plugin's own.

    Raises:
        PluginError: The component is unknown, or several plugins offer it.
    """
    plugins = current()
    plugins.check()
    return plugins.component(kind, name).factory
