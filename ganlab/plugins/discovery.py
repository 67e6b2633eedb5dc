"""Locates plugins: the entry points of installed distributions, and one local file."""

from __future__ import annotations

import functools
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


@dataclass(frozen=True)
class Place:
    """The location of one plugin, before any of its code is executed.

    Attributes:
        plugin: Its name and distribution.
        load: Returns the module or object with the hooks.
        source: Returns the file with the hooks; None if it is unknown. May import parent packages.
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
    allow = [name.strip() for name in os.environ.get("GANLAB_PLUGINS", "").split(",") if name.strip()]
    points = sorted(importlib.metadata.entry_points(group=GROUP), key=lambda point: point.name)
    known = [point.name for point in points] + ([LOCAL_MODULE] if local else [])
    for said, names in (("The environment variable GANLAB_PLUGINS names", allow), ("--no-plugin names", deny)):
        for name in names:
            if name not in known:
                known_ones = nearest(name, known) or f" Known plugins: {', '.join(known)}."
                raise PluginError(f"{said} the plugin {name!r}, which is not there.{known_ones}")

    def place(plugin: Plugin, load: Callable[[], Any], source: Callable[[], Path | None]) -> Place:
        return Place(plugin, load, source, plugin.name in deny or bool(allow and plugin.name not in allow))

    for point in points:
        plugin = Plugin(point.name, *_distribution(point))
        yield place(plugin, functools.partial(_load_point, point), functools.partial(_source, point))
    if local:
        yield place(Plugin(LOCAL_MODULE, str(local), ""), lambda: _load_file(local), lambda: local)


def _distribution(point: importlib.metadata.EntryPoint) -> tuple[str, str]:
    """A distribution's name and version. An interrupted uninstallation leaves entry points without metadata."""
    try:
        if point.dist is None:
            return "unknown", ""
        metadata = point.dist.metadata  # parsed anew at every access
        return metadata["Name"] or "unknown", metadata["Version"] or ""
    except Exception:
        return "unknown", ""


def _source(point: importlib.metadata.EntryPoint) -> Path | None:
    return None if point.attr else validation.source_of(point.module)  # an object's class may be defined anywhere


def _load_point(point: importlib.metadata.EntryPoint) -> Any:
    validation.check_source(validation.source_of(point.module))
    return point.load()


def _load_file(path: Path) -> types.ModuleType:
    validation.check_source(path)
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


def plugin_file_in(folder: Path) -> Path | None:
    """The `ganlab_plugins.py` of a folder, or None. One in a run's directory is data and is not executed."""
    path = folder / f"{LOCAL_MODULE}.py"
    return path if path.is_file() and not (folder / "run.json").is_file() else None
