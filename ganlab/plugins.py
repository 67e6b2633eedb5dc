"""Finds plugins, keeps broken ones as rows, and answers for the components that they offer."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import inspect
import os
import sys
import traceback
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pluggy

from ganlab import contract, hookspecs
from ganlab.errors import PluginError, nearest
from ganlab.importing import watched
from ganlab.recipes import Factory

GROUP = "ganlab"
LOCAL_MODULE = "ganlab_plugins"
KINDS = (
    "constraints",
    "architectures",
    "strategies",
    "datasets",
    "losses",
    "evaluators",
    "diagnostics",
    "features",
    "optimizers",
    "launchers",
    "searches",
)
# The statuses of plugins that something is wrong with.
UNUSABLE = ("broken", "incompatible")


@dataclass(frozen=True)
class Plugin:
    """One plugin that was found.

    Attributes:
        name: Its entry point's name: what `--no-plugin` and `GANLAB_PLUGINS` take.
        distribution: The installed distribution that brings it, or the path of a `ganlab_plugins.py`.
        version: The distribution's version, empty for a file.
        status: `loaded`, `disabled`, `broken`, or `incompatible` where it was written for another contract.
        error: The traceback of a broken one; what is wrong with an incompatible one.
    """

    name: str
    distribution: str
    version: str
    status: str = "loaded"
    error: str = ""

    @property
    def reason(self) -> str:
        """What is wrong with a broken one, the last line of its traceback, or with an incompatible one."""
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
        clashes: By kind and name, a message for every component that several plugins offer; of those, `components`
            has the one that was found first.
    """

    rows: list[Plugin] = field(default_factory=list)
    components: dict[tuple[str, str], Component] = field(default_factory=dict)
    clashes: dict[tuple[str, str], str] = field(default_factory=dict)
    _offering: dict[tuple[str, str], list[Plugin]] = field(default_factory=dict)
    _manager: pluggy.PluginManager = field(default_factory=lambda: pluggy.PluginManager("ganlab"))

    def __post_init__(self) -> None:
        self._manager.add_hookspecs(hookspecs)

    def add(self, plugin: Plugin, load: Callable[[], Any]) -> None:
        """Loads one plugin and takes in its components; one that fails in any way becomes a row that says how."""
        try:
            with watched(plugin.name, _origin(plugin)):
                loaded = load()
                found = self._register(plugin, loaded)
        except contract.OtherContractError as error:
            self.rows.append(_replace(plugin, status="incompatible", error=str(error)))
            return
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            self.rows.append(_replace(plugin, status="broken", error=traceback.format_exc()))
            return
        self.rows.append(plugin)
        for component in found:
            self._take(component)

    def _register(self, plugin: Plugin, loaded: Any) -> list[Component]:
        contract.check_declared(getattr(loaded, contract.DECLARATION, None))
        probe = pluggy.PluginManager("ganlab")
        probe.add_hookspecs(hookspecs)
        probe.register(loaded, name=plugin.name)
        contract.check_hooks(probe)
        found = []
        for kind in KINDS:
            for implementation in getattr(probe.hook, f"ganlab_{kind}").get_hookimpls():
                offered = contract.offers(kind, implementation)
                found += [Component(kind, name, Factory(kind, name, make), plugin) for name, make in offered]
        if self._manager.has_plugin(plugin.name):
            other = next(row for row in self.rows if row.name == plugin.name)
            raise PluginError(f"{_origin(other)} brings a plugin of this name too; uninstall one of them")
        self._manager.register(loaded, name=plugin.name)
        return found

    def _take(self, component: Component) -> None:
        key = (component.kind, component.name)
        self.components.setdefault(key, component)
        offering = self._offering.setdefault(key, [])
        offering.append(component.plugin)
        if len(offering) > 1:
            count = {2: "Two", 3: "Three"}.get(len(offering), str(len(offering)))
            *most, last = [f"{plugin.name!r} of {_origin(plugin)}" for plugin in offering]
            self.clashes[key] = (
                f"{count} plugins offer {'.'.join(key)}: {', '.join(most)} and {last}. Disable "
                f"{'one of them' if len(offering) == 2 else 'all but one'}: "
                f"{' or '.join(f'--no-plugin {plugin.name}' for plugin in offering)}."
            )

    def check(self, strict: bool | None = None) -> None:
        """Raises, where strict, if anything is wrong with any plugin, used or not.

        Args:
            strict: Whether to be strict; default: whether `GANLAB_STRICT_PLUGINS` is set.

        Raises:
            PluginError: Strict, and there is a name clash, or a plugin that is broken or incompatible.
        """
        strict = os.environ.get("GANLAB_STRICT_PLUGINS", "") not in ("", "0") if strict is None else strict
        if not strict:
            return
        if self.clashes:
            raise PluginError("\n".join(self.clashes.values()))
        for row in self.rows:
            if row.status in UNUSABLE:
                raise PluginError(
                    f"Plugin {row.name!r} of {_origin(row)} is {row.status}: {row.reason.rstrip('.')}. "
                    f"Mend it, disable it with --no-plugin {row.name}, or unset GANLAB_STRICT_PLUGINS."
                )

    def component(self, kind: str, name: str) -> Component:
        """The component of this kind and name.

        Raises:
            PluginError: There is none, and the message has the nearest name and any plugin that failed to load; or
                several plugins offer it.
        """
        if kind not in KINDS:
            raise PluginError(
                f"There is no kind of component {kind!r}.{nearest(kind, KINDS)} Kinds: {', '.join(KINDS)}."
            )
        if (kind, name) in self.clashes:
            raise PluginError(self.clashes[kind, name])
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
        found(Plugin(point.name, *_distribution(point)), functools.partial(_load_point, point))
    if local:
        found(Plugin(LOCAL_MODULE, str(local), ""), lambda: _load_file(local))
    return plugins


def _distribution(point: importlib.metadata.EntryPoint) -> tuple[str, str]:
    """Name and version; an uninstallation that was cut short leaves entry points whose metadata is gone."""
    try:
        return (point.dist.name or "unknown", point.dist.version or "") if point.dist else ("unknown", "")
    except Exception:
        return "unknown", ""


def _load_point(point: importlib.metadata.EntryPoint) -> Any:
    contract.check_source(contract.source_of(point.module))
    return point.load()


def _load_file(path: Path) -> types.ModuleType:
    contract.check_source(path)
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
    if row.status in UNUSABLE:
        raise PluginError(f"{path} cannot be used: {row.reason}")
    use(found)


def component(kind: str, name: str) -> Factory:
    """A registered factory: `ganlab.component("losses", "hinge")()`.

    Args:
        kind: `constraints`, `architectures`, `strategies`, `datasets`, `losses`, `evaluators`, `diagnostics`,
            `features`, `optimizers`, `launchers` or `searches`.
        name: The component's name.

    Returns:
        The factory, with the keyword parameters of the plugin's own.

    Raises:
        PluginError: There is no such component, or several plugins offer it.
    """
    plugins = current()
    plugins.check()
    return plugins.component(kind, name).factory
