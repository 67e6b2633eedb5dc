"""Finds plugins, keeps broken ones as rows, and answers for the components that they offer."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import inspect
import os
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pluggy

from ganlab import hookspecs
from ganlab.errors import PluginError, nearest
from ganlab.recipes import Factory

GROUP = "ganlab"
LOCAL_MODULE = "ganlab_plugins"
KINDS = ("constraints", "architectures", "strategies", "datasets", "losses", "evaluators", "optimizers")


@dataclass(frozen=True)
class Plugin:
    """One plugin that was found.

    Attributes:
        name: Its entry point's name: what `--no-plugin` and `GANLAB_PLUGINS` take.
        distribution: The installed distribution that brings it, or the path of a `ganlab_plugins.py`.
        version: The distribution's version, empty for a file.
        status: `loaded`, `disabled` or `broken`.
        error: The traceback of a broken one.
    """

    name: str
    distribution: str
    version: str
    status: str = "loaded"
    error: str = ""

    @property
    def reason(self) -> str:
        """The last line of the traceback of a broken one: what went wrong."""
        return self.error.strip().rpartition("\n")[2].removeprefix("ganlab.errors.PluginError: ")


@dataclass(frozen=True)
class Component:
    """A named part that a plugin offers.

    Attributes:
        kind: One of `KINDS`.
        name: Its name in experiment files, after `<kind>.`.
        factory: What makes it, recording how it was made.
        plugin: The plugin that offers it.
    """

    kind: str
    name: str
    factory: Factory
    plugin: Plugin

    @property
    def summary(self) -> str:
        """The first line of the factory's documentation."""
        return (inspect.getdoc(self.factory.make) or "").strip().split("\n")[0]


@dataclass
class Plugins:
    """The plugins of this process, loaded one by one so that none takes another down.

    Attributes:
        rows: Every plugin that was found, with its status.
        components: What the loaded ones offer.
        clashes: A message for every name that two plugins offer.
    """

    rows: list[Plugin] = field(default_factory=list)
    components: dict[tuple[str, str], Component] = field(default_factory=dict)
    clashes: list[str] = field(default_factory=list)
    _manager: pluggy.PluginManager = field(default_factory=lambda: pluggy.PluginManager("ganlab"))

    def __post_init__(self) -> None:
        self._manager.add_hookspecs(hookspecs)

    def add(self, plugin: Plugin, load: Callable[[], Any]) -> None:
        """Loads one plugin and takes in its components; one that fails in any way becomes a row that says how."""
        try:
            loaded = load()
            found = self._register(plugin, loaded)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            self.rows.append(_replace(plugin, status="broken", error=traceback.format_exc()))
            return
        self.rows.append(plugin)
        for component in found:
            self._take(component)

    def _register(self, plugin: Plugin, loaded: Any) -> list[Component]:
        probe = pluggy.PluginManager("ganlab")
        probe.add_hookspecs(hookspecs)
        probe.register(loaded, name=plugin.name)
        try:
            probe.check_pending()
        except pluggy.PluginValidationError as error:
            hooks = [name for name in dir(hookspecs) if name.startswith("ganlab_")]
            unknown = str(error).split("'")[1] if "'" in str(error) else ""
            raise PluginError(f"unknown hook {unknown!r}.{nearest(unknown, hooks)}") from None
        found = []
        for kind in KINDS:
            for implementation in getattr(probe.hook, f"ganlab_{kind}").get_hookimpls():
                found += [Component(kind, n, Factory(kind, n, f), plugin) for n, f in _offers(kind, implementation)]
        if self._manager.has_plugin(plugin.name):
            other = next(row for row in self.rows if row.name == plugin.name)
            raise PluginError(f"{_origin(other)} brings a plugin of this name too; uninstall one of them")
        self._manager.register(loaded, name=plugin.name)
        return found

    def _take(self, component: Component) -> None:
        key = (component.kind, component.name)
        other = self.components.setdefault(key, component)
        if other is not component:
            a, b = other.plugin, component.plugin
            self.clashes.append(
                f"Two plugins offer {component.kind}.{component.name}: {a.name!r} of {_origin(a)} and {b.name!r} of "
                f"{_origin(b)}. Disable one of them: --no-plugin {a.name} or --no-plugin {b.name}."
            )

    def check(self, strict: bool | None = None) -> None:
        """Raises where the plugins cannot be used together.

        Args:
            strict: Whether a broken plugin is an error too; default: whether `GANLAB_STRICT_PLUGINS` is set.

        Raises:
            PluginError: A name clash, or a broken plugin where strict.
        """
        if self.clashes:
            raise PluginError("\n".join(self.clashes))
        strict = os.environ.get("GANLAB_STRICT_PLUGINS", "") not in ("", "0") if strict is None else strict
        broken = [row for row in self.rows if row.status == "broken"]
        if strict and broken:
            raise PluginError(
                f"Plugin {broken[0].name!r} of {_origin(broken[0])} is broken: {broken[0].reason.rstrip('.')}. "
                f"Mend it, disable it with --no-plugin {broken[0].name}, or unset GANLAB_STRICT_PLUGINS."
            )

    def component(self, kind: str, name: str) -> Component:
        """The component of this kind and name.

        Raises:
            PluginError: There is none; the message has the nearest name and any plugin that failed to load.
        """
        if kind not in KINDS:
            raise PluginError(
                f"There is no kind of component {kind!r}.{nearest(kind, KINDS)} Kinds: {', '.join(KINDS)}."
            )
        if (kind, name) in self.components:
            return self.components[kind, name]
        names = sorted(n for k, n in self.components if k == kind)
        elsewhere = [f"{k}.{n}" for k, n in self.components if n == name]
        near = nearest(f"{kind}.{name}", [f"{kind}.{n}" for n in names])
        if elsewhere:
            near = f" Did you mean {elsewhere[0]!r}?"
        known = ", ".join(names) or "none"
        raise PluginError(f"There is no {kind}.{name}.{near} Known {kind}: {known}.{self.absent()}")

    def absent(self) -> str:
        """A sentence on the plugins that were found and are not loaded, empty when all are."""
        missing = [
            f"{row.name} ({row.status}{': ' + row.reason if row.error else ''})"
            for row in self.rows
            if row.status != "loaded"
        ]
        return f" Plugins not loaded: {', '.join(missing)}; see 'ganlab plugins'." if missing else ""

    def notify(self, hook: str, **arguments: Any) -> list[str]:
        """Calls a notification hook of every plugin, each on its own; returns a line for each that failed."""
        failures = []
        for implementation in getattr(self._manager.hook, hook).get_hookimpls():
            try:
                implementation.function(**{name: arguments[name] for name in implementation.argnames})
            except Exception as error:
                failures.append(f"Plugin {implementation.plugin_name!r} failed in {hook}: {error!r}")
        return failures

    def listens(self, hook: str) -> bool:
        """Whether any plugin implements this hook."""
        return bool(getattr(self._manager.hook, hook).get_hookimpls())


def _offers(kind: str, implementation: Any) -> Iterable[tuple[str, Callable[..., Any]]]:
    offered = implementation.function()
    if not isinstance(offered, dict):
        raise PluginError(f"ganlab_{kind} returned {type(offered).__name__}; it must return a dict of name to factory")
    for name, factory in offered.items():
        if not (isinstance(name, str) and name.isidentifier()):
            raise PluginError(f"ganlab_{kind} offers the name {name!r}; a name must be a Python identifier")
        if not callable(factory):
            raise PluginError(f"ganlab_{kind} offers {name!r} as {factory!r}; it must be a class or a function")
        for parameter in inspect.signature(factory).parameters.values():
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                raise PluginError(f"{kind}.{name} takes {parameter}, which would accept any typo; name its parameters")
            if parameter.kind is parameter.POSITIONAL_ONLY:
                raise PluginError(f"{kind}.{name} takes {parameter.name!r} by position only; files set it by name")
        yield name, factory


def _replace(plugin: Plugin, *, status: str, error: str = "") -> Plugin:
    return Plugin(plugin.name, plugin.distribution, plugin.version, status, error)


def _origin(plugin: Plugin) -> str:
    return f"{plugin.distribution} {plugin.version}".strip()


def discover(*, deny: Sequence[str] = (), local: Path | None = None) -> Plugins:
    """Finds and loads plugins: installed ones by entry point, then a local file.

    Args:
        deny: Names of plugins to leave out. The environment's `GANLAB_PLUGINS=a,b` is a list of the only ones to load.
        local: A `ganlab_plugins.py`, a plugin with no packaging; None for none.

    Returns:
        The plugins, broken and disabled ones included as rows.

    Raises:
        PluginError: `deny` or `GANLAB_PLUGINS` names a plugin that is not there.
    """
    plugins = Plugins()
    allow = [name.strip() for name in os.environ.get("GANLAB_PLUGINS", "").split(",") if name.strip()]
    points = sorted(importlib.metadata.entry_points(group=GROUP), key=lambda point: point.name)
    known = [point.name for point in points] + ([LOCAL_MODULE] if local else [])
    for name in [*allow, *deny]:
        if name not in known:
            raise PluginError(
                f"There is no plugin {name!r} to allow or deny.{nearest(name, known)} See 'ganlab plugins'."
            )

    def found(plugin: Plugin, load: Callable[[], Any]) -> None:
        if plugin.name in deny or (allow and plugin.name not in allow):
            plugins.rows.append(_replace(plugin, status="disabled"))
        else:
            plugins.add(plugin, load)

    for point in points:
        name, version = (point.dist.name, point.dist.version) if point.dist else ("unknown", "")
        found(Plugin(point.name, name, version), point.load)
    if local:
        found(Plugin(LOCAL_MODULE, str(local), ""), lambda: _load_file(local))
    return plugins


def _load_file(path: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(LOCAL_MODULE, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[LOCAL_MODULE] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[LOCAL_MODULE]
        raise
    return module


_current: Plugins | None = None


def current() -> Plugins:
    """The plugins in use, found at the first call."""
    global _current
    if _current is None:
        use(discover())
    assert _current is not None
    return _current


def use(plugins: Plugins) -> Plugins:
    """Makes these the plugins in use."""
    global _current
    _current = plugins
    return plugins


def use_plugin_file(path: str | os.PathLike[str]) -> None:
    """Loads a plugin with no packaging, as the command line does with the `ganlab_plugins.py` beside a file.

    Args:
        path: A Python file with ganlab hooks. It takes the place of one that was loaded so before.

    Raises:
        PluginError: There is no such file, or it is broken.
    """
    local = Path(path).resolve()
    if not local.is_file():
        raise PluginError(f"{path} is no file. Give the path of a Python file with ganlab hooks.")
    found = discover(local=local)
    row = found.rows[-1]
    if row.status == "broken":
        raise PluginError(f"{path} cannot be used: {row.reason}")
    use(found)


def component(kind: str, name: str) -> Factory:
    """A registered factory: `ganlab.component("losses", "hinge")()`.

    Args:
        kind: `constraints`, `architectures`, `strategies`, `datasets`, `losses`, `evaluators` or `optimizers`.
        name: The component's name.

    Returns:
        The factory, with the keyword parameters of the plugin's own.

    Raises:
        PluginError: There is no such component, or two plugins offer it.
    """
    plugins = current()
    plugins.check()
    return plugins.component(kind, name).factory
