"""Locates plugins: the entry points of installed distributions, and one local file."""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ganlab.errors import PluginError, nearest
from ganlab.plugins import validation
from ganlab.plugins.catalog import Plugin

GROUP = "ganlab"
LOCAL_MODULE = "ganlab_plugins"

# The files that mark the folder of a run, a sweep and a benchmark.
_MARKS = ("run.json", "sweep.json", "benchmark.json")


@dataclass(frozen=True)
class Place:
    """The location of one plugin, before any of its code is executed.

    Attributes:
        plugin: Its name and distribution.
        load: Returns the module or object with the hooks.
        source: Returns the file of its module; None if it is unknown.
        disabled: Whether the plugin is denied, or missing from the list of allowed ones.
    """

    plugin: Plugin
    load: Callable[[], Any]
    source: Callable[[], Path | None]
    disabled: bool


def places(*, deny: Sequence[str] = (), local: Path | None = None) -> Iterator[Place]:
    """Yields the places of all plugins: installed ones by name, then the local file.

    Args:
        deny: Names of plugins to disable. The environment variable `GANLAB_PLUGINS=a,b` lists the only ones to load.
        local: A `ganlab_plugins.py`; None for none.

    Raises:
        PluginError: `deny` or `GANLAB_PLUGINS` names an unknown plugin.
    """
    allow = allowed()
    points = sorted(importlib.metadata.entry_points(group=GROUP), key=lambda point: point.name)
    known = [point.name for point in points] + ([LOCAL_MODULE] if local else [])
    for option, names in (("The environment variable GANLAB_PLUGINS names", allow), ("--no-plugin names", deny)):
        for name in names:
            if name not in known:
                known_ones = nearest(name, known) or f" Known plugins: {', '.join(known)}."
                raise PluginError(f"{option} the plugin {name!r}, which is not there.{known_ones}")

    def place(plugin: Plugin, load: Callable[[], Any], source: Callable[[], Path | None]) -> Place:
        return Place(plugin, load, source, plugin.name in deny or bool(allow and plugin.name not in allow))

    for point in points:
        plugin = Plugin(point.name, *distribution_of(point))
        yield place(
            plugin, functools.partial(_load_point, point), functools.partial(validation.source_of, point.module)
        )
    if local:
        yield place(Plugin(LOCAL_MODULE, str(local), ""), lambda: load_file(local), lambda: local)


def allowed() -> list[str]:
    """The names that `GANLAB_PLUGINS` lists, the only plugins to load; empty for all."""
    return [name.strip() for name in os.environ.get("GANLAB_PLUGINS", "").split(",") if name.strip()]


def distribution_of(point: importlib.metadata.EntryPoint) -> tuple[str, str]:
    """A distribution's name and version. An interrupted uninstallation leaves entry points without metadata."""
    try:
        if point.dist is None:
            return "unknown", ""
        metadata = point.dist.metadata  # parsed anew at every access
        return metadata["Name"] or "unknown", metadata["Version"] or ""
    except Exception:
        return "unknown", ""


def _load_point(point: importlib.metadata.EntryPoint) -> Any:
    validation.check_source(validation.source_of(point.module))
    return point.load()


class _SourceLoader(importlib.machinery.SourceFileLoader):
    """Executes the source itself: what lies beside it in `__pycache__` may be other code."""

    def path_stats(self, path: str) -> Any:
        """Without times and sizes, no bytecode is read or written."""
        raise OSError


def load_file(path: Path) -> types.ModuleType:
    """Imports a plugin file."""
    validation.check_source(path)
    spec = importlib.util.spec_from_loader(LOCAL_MODULE, _SourceLoader(LOCAL_MODULE, str(path)))
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


def plugin_file_in(folder: Path) -> Path | None:
    """The `ganlab_plugins.py` of a folder, or None. One in a run, a sweep or a benchmark is not executed."""
    path = folder / f"{LOCAL_MODULE}.py"
    return path if path.is_file() and not is_data(folder) else None


def is_data(folder: Path) -> bool:
    """Whether a folder is, or lies in, that of a run, a sweep or a benchmark, which may come from a stranger."""
    return home_of(folder) is not None


def home_of(path: Path) -> Path | None:
    """The nearest folder of a run, a sweep or a benchmark that a path is or lies in; None if there is none."""
    ways = (Path(os.path.abspath(path)), path.resolve())
    places = dict.fromkeys(at for way in ways for at in (way, *way.parents))
    return next((at for at in places if any(os.path.lexists(at / name) for name in _MARKS)), None)
