"""Serializes experiments: as gin that reads back to the same recipe, and as flat values for dashboards."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ganlab.composition import UNUSED
from ganlab.config.parser import ONLY_IN_PYTHON, Macro, read_text
from ganlab.config.registry import EXPERIMENT, Names
from ganlab.config.resolver import Resolver
from ganlab.config.summary import summary
from ganlab.errors import ConfigError
from ganlab.plugins import manager as plugins
from ganlab.plugins.annotations import without_numpy
from ganlab.plugins.recipes import Recipe

Scalar = bool | int | float | str

_PLAIN = (bool, int, float, str, bytes, type(None))


def render(recipe: Recipe, *, defaults: bool = False) -> str:
    """The recipe as gin text, which `load` reads back to an equal recipe.

    Args:
        recipe: The recipe of an experiment.
        defaults: Whether to write parameters that were not given too, with their defaults.

    Returns:
        The text. A component used with different arguments has a scope for each use. In place of a value that no file
        can make again, for example a part made in Python without a registered factory, it has a macro that only
        `load(..., objects=objects(recipe))` knows, so that nobody reads an experiment without it.

    Raises:
        ConfigError: The text would not read back to the same recipe.
    """
    # A default without a literal is left out: read without it, the component has it.
    recipe = _Marks().placed(_with_defaults(recipe, literal=True) if defaults else recipe)
    plan = _Plan(recipe)
    sections = [
        "\n".join(f"{use.name}.{name} = {plan.literal(value)}" for name, value in use.recipe.arguments.items())
        for use in plan.uses
    ]
    _check("\n".join(sections), recipe)
    return "\n\n".join(section for section in sections if section) + "\n"


def objects(value: Any) -> dict[str, Any]:
    """The values in a recipe that no file can make again, under the names that `render` writes for them."""
    marks = _Marks()
    marks.placed(value)
    return marks.objects


def flatten(recipe: Recipe) -> dict[str, Scalar]:
    """Every setting of an experiment, including defaults, as one flat table.

    Returns:
        For example
        `{"experiment.batch_size": 64, "constraints": "gradient_penalty", "constraints.gradient_penalty.weight": 10.0}`.
        Each part has its own name as key, lists are joined by commas, and None is left out. A value that no file can
        make again is described by its class and the arguments that it keeps: `PairSlope(weight=1.0)`.
    """
    marks = _Marks()
    plan = _Plan(marks.placed(_with_defaults(recipe)))
    flat: dict[str, Scalar] = {}
    for use in plan.uses:
        for name, value in use.recipe.arguments.items():
            part = use.name == EXPERIMENT and _has_component(value)
            scalar = _scalar(value, marks.objects)
            if scalar is not None and scalar != "":
                flat[name if part else f"{use.name}.{name}"] = scalar
    return flat


class _Marks:
    """Macros in place of values that gin has no literal for."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}

    def placed(self, value: Any) -> Any:
        """A value with a macro in place of everything in it without a literal, and numpy's numbers as Python's."""
        if isinstance(value, Recipe):
            return replace(value, arguments={name: self.placed(item) for name, item in value.arguments.items()})
        if type(value) in (list, tuple):
            return type(value)(self.placed(item) for item in value)
        if type(value) is dict and all(type(key) in _PLAIN for key in value):
            return {self.placed(key): self.placed(item) for key, item in value.items()}
        value = without_numpy(value)
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if type(value) in (*_PLAIN, Macro) and value == value:  # NaN has no literal
            return value
        return Macro(self._name(value))

    def _name(self, value: Any) -> str:
        known = [name for name, other in self.objects.items() if other is value]
        if known:
            return known[0]
        called = repr(value) if isinstance(value, float) else getattr(value, "__name__", type(value).__name__)
        stem = f"{ONLY_IN_PYTHON}{re.sub(r'[^a-zA-Z0-9_]+', '', str(called)).lstrip('0123456789') or 'value'}"
        name, count = stem, 1
        while name in self.objects:
            count += 1
            name = f"{stem}_{count}"
        self.objects[name] = value
        return name


@dataclass(frozen=True)
class _Use:
    """A recipe and the name, including its scope, under which its settings are written."""

    name: str
    recipe: Recipe


class _Plan:
    """Names for the recipes of an experiment: a component with different arguments gets a scope for each use."""

    def __init__(self, recipe: Recipe) -> None:
        distinct: dict[str, tuple[str, Recipe]] = {}
        for path, inner in _recipes("", recipe):
            distinct.setdefault(repr(inner), (path, inner))
        ways: dict[str, int] = {}
        for _, inner in distinct.values():
            ways[inner.selector] = ways.get(inner.selector, 0) + 1
        self._names = {
            key: inner.selector if ways[inner.selector] == 1 else f"{path}/{inner.selector}"
            for key, (path, inner) in distinct.items()
        }
        self.uses = [_Use(EXPERIMENT, recipe)]
        self.uses += [_Use(self._names[key], inner) for key, (_, inner) in distinct.items()]

    def literal(self, value: Any) -> str:
        """A value as gin writes it."""
        if isinstance(value, Recipe):
            return f"@{self._names[repr(value)]}()"
        if type(value) is float:
            return repr(value).replace("inf", "1e999")
        if type(value) is dict:
            return "{" + ", ".join(f"{self.literal(key)}: {self.literal(item)}" for key, item in value.items()) + "}"
        if type(value) is list:
            return "[" + ", ".join(map(self.literal, value)) + "]"
        if type(value) is tuple:
            return "(" + "".join(f"{self.literal(item)}, " for item in value).rstrip(" ") + ")"
        return repr(value)


def _recipes(path: str, value: Any) -> Iterator[tuple[str, Recipe]]:
    """The recipes inside a value, each before those nested in it, with a path that is a valid name."""
    if isinstance(value, Recipe):
        if value.name != EXPERIMENT or value.kind:
            yield path, value
        for name, argument in value.arguments.items():
            yield from _recipes(f"{path}_{name}" if path else name, argument)
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value, start=1):
            yield from _recipes(f"{path}_{number}", item)
    elif isinstance(value, dict):
        for number, (key, item) in enumerate(value.items(), start=1):
            yield from _recipes(f"{path}_{key if str(key).isidentifier() else number}", item)


def _with_defaults(value: Any, *, literal: bool = False) -> Any:
    """Adds the parameters that were not given; with `literal` only those whose defaults a file can have."""
    if isinstance(value, Recipe):
        parameters = Names(plugins.current()).parameters(value.selector if value.kind else EXPERIMENT)
        defaults = {n: p.default for n, p in parameters.items() if p.default is not inspect.Parameter.empty}
        for part in () if value.kind else UNUSED:  # of experiments without them no line names them
            del defaults[part]
        complete = {n: default for n, default in defaults.items() if not (literal and objects(default))}
        complete |= {name: _with_defaults(argument, literal=literal) for name, argument in value.arguments.items()}
        return replace(value, arguments={name: complete[name] for name in parameters if name in complete})
    if type(value) in (list, tuple):
        return type(value)(_with_defaults(item, literal=literal) for item in value)
    if type(value) is dict:
        return {name: _with_defaults(item, literal=literal) for name, item in value.items()}
    return value


def _check(text: str, recipe: Recipe) -> None:
    names = Names(plugins.current())
    read = Resolver(names, names.complete(read_text(text, "written")), strict=False).experiment()
    for name, value in recipe.arguments.items():
        back = read.arguments.get(name)
        if back != (list(value) if isinstance(back, list) else value):
            raise ConfigError(
                f"experiment.{name} = {value!r} cannot be written as gin: it reads back as {back!r}. Use plain values."
            )


def _has_component(value: Any) -> bool:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return isinstance(value, (Recipe, Macro)) or any(map(_has_component, items))


def _scalar(value: Any, objects: dict[str, Any]) -> Scalar | None:
    if isinstance(value, str):
        # A file's name may not be valid text, but dashboards need text.
        return value.encode(errors="backslashreplace").decode()
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Recipe):
        return value.name
    if isinstance(value, Macro):
        return summary(objects[value.name])
    if isinstance(value, (list, tuple)):
        return ", ".join(str(_scalar(item, objects)) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_scalar(item, objects)}" for key, item in value.items())
    return type(value).__name__
