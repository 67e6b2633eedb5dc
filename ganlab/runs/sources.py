"""Hashes of the code behind an experiment's parts, by module, so that a resumed run can report what has changed.

A module is hashed after parsing: comments, blank lines, docstrings and layout do not count.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types
from collections.abc import Iterator
from typing import Any

from ganlab.errors import PluginError
from ganlab.plugins import manager as plugins
from ganlab.plugins.recipes import Factory, Recipe
from ganlab.runs.modules import closure, definitions, file_of, is_library

MADE_BY = "made by"

_PLAIN = (str, bytes, int, float, complex, bool, type(None))


def of_parts(recipe: Recipe) -> dict[str, dict[str, str]]:
    """Hashes the code of every part of an experiment.

    For each part: its module, and the modules it imports from the same package, from other plugins and from the
    user's own code. Python and installed libraries are left out, because they have versions.

    Args:
        recipe: The experiment.

    Returns:
        By part (`constraints.mine`, or the class of an object that no factory made): `made by`, the function or class
        that makes it, and the hashes of its modules by name.
    """
    codes: dict[str, dict[str, str]] = {}
    for name, make, plugin in _parts(recipe):
        if name not in codes and (code := _code(make, plugin)):
            codes[name] = code
    return codes


def _parts(value: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yields each component, object and function of a recipe: its name, what makes it, its plugin's module."""
    if isinstance(value, Recipe):
        with contextlib.suppress(PluginError):  # the experiment itself, which no plugin offers
            component = plugins.current().component(value.kind, value.name)
            yield value.selector, component.factory.make, plugins.current().loaded(component.plugin.name)
        for argument in value.arguments.values():
            yield from _parts(argument)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _parts(item)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _parts(item)
    elif not isinstance(value, _PLAIN):
        made = value.make if isinstance(value, Factory) else value
        if not isinstance(made, (type, types.FunctionType, functools.partial)):
            made = type(made)
        yield _qualified(_definition(made)), made, None


def _code(make: Any, plugin: Any) -> dict[str, str]:
    definition = _definition(make)
    module = _module_of(definition)
    if module is None or is_library(module):
        return {}
    whole = isinstance(make, (type, types.FunctionType)) and "<" not in getattr(make, "__qualname__", "")
    hashes: dict[str, str] = {}
    roots, imported = [], list[str]()
    # Anything without a name of its own, for example a functools.partial, was made where the plugin offers it.
    for name in dict.fromkeys((module, None if whole else getattr(plugin, "__name__", None))):
        if name is not None and name != "__main__" and file_of(name) is not None:
            roots.append(name)
        elif name == module:
            hashes, imported = definitions(definition)
    return {MADE_BY: _qualified(definition), **hashes, **closure(roots, imported)}


def _definition(make: Any) -> Any:
    """The class or function behind a factory."""
    while True:
        if isinstance(make, functools.partial):
            make = make.func
        elif isinstance(make, types.MethodType):
            make = make.__func__
        else:
            break
    unwrapped = inspect.unwrap(make) if callable(make) else make
    return unwrapped if isinstance(unwrapped, (type, types.FunctionType)) else type(unwrapped)


def _module_of(definition: Any) -> str | None:
    name = getattr(definition, "__module__", None)
    return name if isinstance(name, str) and name in sys.modules else None


def _qualified(definition: Any) -> str:
    definition = _definition(definition)
    return f"{getattr(definition, '__module__', '?')}.{getattr(definition, '__qualname__', '?')}"
