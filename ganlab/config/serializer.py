"""Serializes experiments: as gin that reads back to the same recipe, and as flat values for dashboards."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ganlab.config.parser import read_text
from ganlab.config.registry import EXPERIMENT, Names
from ganlab.config.resolver import Resolver
from ganlab.errors import ConfigError
from ganlab.plugins import manager as plugins
from ganlab.plugins.recipes import Recipe

Scalar = bool | int | float | str


class _UnwritableError(Exception):
    """A value that gin has no literal for."""


def render(recipe: Recipe, *, defaults: bool = False) -> str:
    """The recipe as gin text, which `load` reads back to an equal recipe.

    Args:
        recipe: The recipe of an experiment.
        defaults: Whether to write parameters that were not given too, with their defaults.

    Returns:
        The text. A component used with different arguments has a scope for each use. A value that no file can rebuild,
        for example a part made in Python without a registered factory, becomes a comment that states this.

    Raises:
        ConfigError: The text would not read back to the same recipe.
    """
    recipe = _without_numpy(_with_defaults(recipe) if defaults else recipe)
    plan = _Plan(recipe)
    sections: list[str] = []
    lost: list[Any] = []
    for use in plan.uses:
        lines = []
        for name, value in use.recipe.arguments.items():
            try:
                lines.append(f"{use.name}.{name} = {plan.literal(value)}")
            except _UnwritableError as error:
                lines.append(f"# {use.name}.{name} = {' '.join(str(error).split())}: this file cannot rebuild it")
                lost.append(use.recipe.arguments[name])
        sections.append("\n".join(lines))
    if not lost:
        _check("\n".join(sections), recipe)
    else:
        # Settings of a component that only a lost line names would have no effect, which is an error when read.
        reached = plan.reached_without(lost)
        sections = [
            section if use in reached else "\n".join(f"# {line.removeprefix('# ')}" for line in section.splitlines())
            for use, section in zip(plan.uses, sections, strict=True)
        ]
    return "\n\n".join(section for section in sections if section) + "\n"


def flatten(recipe: Recipe) -> dict[str, Scalar]:
    """Every setting of an experiment, including defaults, as one flat table.

    Args:
        recipe: The recipe of an experiment.

    Returns:
        For example
        `{"experiment.batch_size": 64, "constraints": "gradient_penalty", "constraints.gradient_penalty.weight": 10.0}`.
        Each part has its own name as key, lists are joined by commas, and None is left out.
    """
    plan = _Plan(_without_numpy(_with_defaults(recipe)))
    flat: dict[str, Scalar] = {}
    for use in plan.uses:
        for name, value in use.recipe.arguments.items():
            part = use.name == EXPERIMENT and _has_component(value)
            scalar = _scalar(value)
            if scalar is not None and scalar != "":
                flat[name if part else f"{use.name}.{name}"] = scalar
    return flat


@dataclass(frozen=True)
class _Use:
    """A recipe and the name, including its scope, under which its settings are written."""

    name: str
    recipe: Recipe


class _Plan:
    """Names for the recipes of an experiment: a component with different arguments gets a scope for each use.

    Attributes:
        uses: Every distinct recipe, the experiment first.
    """

    def __init__(self, recipe: Recipe) -> None:
        found: dict[str, tuple[str, Recipe]] = {}
        for path, inner in _recipes("", recipe):
            found.setdefault(repr(inner), (path, inner))
        ways: dict[str, int] = {}
        for _, inner in found.values():
            ways[inner.selector] = ways.get(inner.selector, 0) + 1
        self._names = {
            key: inner.selector if ways[inner.selector] == 1 else f"{path}/{inner.selector}"
            for key, (path, inner) in found.items()
        }
        self.uses = [_Use(EXPERIMENT, recipe)]
        self.uses += [_Use(self._names[key], inner) for key, (_, inner) in found.items()]

    def reached_without(self, lost: list[Any]) -> list[_Use]:
        """The uses that are still named if the lost arguments are not written."""
        reached = {EXPERIMENT}

        def follow(recipe: Recipe) -> None:
            for argument in recipe.arguments.values():
                if not any(argument is other for other in lost):
                    for inner in _outermost(argument):
                        reached.add(self._names[repr(inner)])
                        follow(inner)

        follow(self.uses[0].recipe)
        return [use for use in self.uses if use.name in reached]

    def literal(self, value: Any) -> str:
        """A value as gin writes it.

        Raises:
            _UnwritableError: gin has no literal for it.
        """
        if isinstance(value, Recipe):
            return f"@{self._names[repr(value)]}()"
        if type(value) in (bool, int, str, bytes, type(None)):
            return repr(value)
        if type(value) is float and not math.isnan(value):
            return repr(value).replace("inf", "1e999")
        if type(value) is dict:
            return "{" + ", ".join(f"{self.literal(key)}: {self.literal(item)}" for key, item in value.items()) + "}"
        if type(value) is list:
            return "[" + ", ".join(map(self.literal, value)) + "]"
        if type(value) is tuple:
            return "(" + "".join(f"{self.literal(item)}, " for item in value).rstrip(" ") + ")"
        raise _UnwritableError(f"{value!r} of type {type(value).__name__}")


def _outermost(value: Any) -> list[Recipe]:
    """The recipes in a value, without those inside them."""
    if isinstance(value, Recipe):
        return [value]
    items = value if isinstance(value, (list, tuple)) else value.values() if isinstance(value, dict) else ()
    return [recipe for item in items for recipe in _outermost(item)]


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
        for number, item in enumerate(value.values(), start=1):
            yield from _recipes(f"{path}_{number}", item)


def _with_defaults(value: Any) -> Any:
    if isinstance(value, Recipe):
        parameters = Names(plugins.current()).parameters(value.selector if value.kind else EXPERIMENT)
        defaults = {n: p.default for n, p in parameters.items() if p.default is not inspect.Parameter.empty}
        given = {name: _with_defaults(argument) for name, argument in value.arguments.items()}
        both = {**defaults, **given}
        return replace(value, arguments={name: both[name] for name in parameters if name in both})
    if isinstance(value, (list, tuple)):
        return type(value)(_with_defaults(item) for item in value)
    if isinstance(value, dict):
        return {name: _with_defaults(item) for name, item in value.items()}
    return value


def _without_numpy(value: Any) -> Any:
    """Replaces numpy scalars, which come from sweeps in notebooks, with Python's."""
    if isinstance(value, Recipe):
        return replace(value, arguments={name: _without_numpy(argument) for name, argument in value.arguments.items()})
    if type(value) in (list, tuple):
        return type(value)(_without_numpy(item) for item in value)
    if type(value) is dict:
        return {name: _without_numpy(item) for name, item in value.items()}
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return value.item()
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
    return isinstance(value, Recipe) or (isinstance(value, (list, tuple)) and any(map(_has_component, value)))


def _scalar(value: Any) -> Scalar | None:
    if isinstance(value, str):
        # A file's name may not be valid text, but dashboards need text.
        return value.encode(errors="backslashreplace").decode()
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Recipe):
        return value.name
    if isinstance(value, (list, tuple)):
        return ", ".join(str(_scalar(item)) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_scalar(item)}" for key, item in value.items())
    return type(value).__name__
