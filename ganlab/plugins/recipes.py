"""Records how a part was made: its kind, name and arguments, so that a run can be saved and rebuilt."""

from __future__ import annotations

import functools
import inspect
import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ganlab.errors import ConfigError, nearest
from ganlab.interfaces import Dataset
from ganlab.interfaces.schedule import Schedule
from ganlab.plugins.annotations import broken_bound, takes_alone, takes_number, type_name, without_numpy
from ganlab.plugins.machines import name_all
from ganlab.plugins.plugin_errors import plugin_code
from ganlab.plugins.scheduled import follow, starts
from ganlab.support import xla_cache


@dataclass(frozen=True)
class Recipe:
    """A component and the arguments to make it with; arguments may hold further recipes.

    Attributes:
        kind: The component's kind, e.g. `constraints`.
        name: Its name, e.g. `gradient_penalty`.
        arguments: Keyword arguments as given; the others keep their defaults.
    """

    kind: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def selector(self) -> str:
        """The name in experiment files: `constraints.gradient_penalty`."""
        return f"{self.kind}.{self.name}"


class Factory:
    """A component's factory that records the recipe of everything it makes.

    Attributes:
        kind: The component's kind.
        name: Its name.
        make: The plugin's own class or function.
    """

    def __init__(self, kind: str, name: str, make: Callable[..., Any]) -> None:
        functools.update_wrapper(self, make, updated=())
        self.kind, self.name, self.make = kind, name, make

    @property
    def signature(self) -> inspect.Signature:
        """The parameters that an experiment file may set."""
        return inspect.signature(self.make)

    def __call__(self, **arguments: Any) -> Any:
        """Makes the component and records its recipe."""
        selector = f"{self.kind}.{self.name}"
        _check_names(selector, self.signature.parameters, arguments)
        arguments = {name: _taken(self.make, selector, name, value) for name, value in arguments.items()}
        schedules = {
            name: value
            for name, value in arguments.items()
            if isinstance(value, Schedule) and takes_number(self.make, name)
        }
        inputs = getattr(self.make, "scheduled", ()) if self.kind == "architectures" else ()
        values = {**arguments, **starts(selector, self.kind, schedules, inputs)}
        for name, value in values.items():
            if name in schedules:  # a warm-up begins at 0, where a number must be above it
                continue
            if problem := broken_bound(self.make, name, value):
                raise ConfigError(f"{selector}.{name} = {value!r} {problem}")
        for value in arguments.values():
            check_unchanged(value)
        name_all(self.make, arguments)
        recipe = Recipe(self.kind, self.name, {name: described(value) for name, value in arguments.items()})
        if self.kind == "strategies":  # the first to look at devices
            xla_cache.prepare()
        with plugin_code(selector, "its factory"):
            component = self.make(**values)
        if schedules and self.kind != "optimizers":
            follow(component, selector, schedules)
        _remember(component, recipe, self.signature.parameters)
        return component

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(self.make, type) and isinstance(instance, self.make)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        """A class that names the factory as its base derives from the plugin's class."""
        return (self.make,)

    def __repr__(self) -> str:
        return f"<ganlab component {self.kind}.{self.name}>"


def _taken(make: Callable[..., Any], selector: str, name: str, value: Any) -> Any:
    """A number of numpy as one of Python, and a path as a text; what is no text or no dataset is refused for one."""
    value = without_numpy(value)
    if hasattr(value, "shape") and takes_alone(make, name, Dataset):
        raise ConfigError(
            f"{selector}.{name} is an array of shape {tuple(value.shape)}, and must be a ganlab.Dataset. Save it with "
            "numpy.save, and give ganlab.datasets.Arrays(path=...)."
        )
    if value is None or isinstance(value, str) or not takes_alone(make, name, str):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    problem, remedy = f"of type {type_name(value)}", "Give a text."
    if hasattr(value, "shape"):
        problem = f"an array of shape {tuple(value.shape)}"
        remedy = "Save it with numpy.save and give the file's path, or write a ganlab.Dataset that holds it."
    raise ConfigError(f"{selector}.{name} is {problem}, and must be a text, for example the path of a file. {remedy}")


def _check_names(selector: str, parameters: Mapping[str, inspect.Parameter], arguments: Mapping[str, Any]) -> None:
    for name in arguments:
        if name not in parameters:
            near = nearest(name, parameters) or f" Its parameters: {', '.join(parameters) or 'none'}."
            raise ConfigError(f"{selector} has no parameter {name!r}.{near}")
    required = [name for name, parameter in parameters.items() if parameter.default is inspect.Parameter.empty]
    missing = [name for name in required if name not in arguments]
    if missing:
        raise ConfigError(f"{selector} needs {', '.join(missing)}, which has no default. Give a value.")


# Keyed by identity: components need not be hashable, and are not modified. The numbers and texts that a component
# keeps under the names of its parameters show whether somebody else modified it.
_recipes: dict[int, tuple[weakref.ref[Any], Recipe, dict[str, Any]]] = {}


def _remember(component: Any, recipe: Recipe, parameters: Iterable[str]) -> None:
    key = id(component)
    try:
        reference = weakref.ref(component, lambda _: _recipes.pop(key, None))
    except TypeError:  # an object with __slots__ or of a builtin type: it works, and is recorded by its class alone
        return
    attributes = getattr(component, "__dict__", {})
    plain = (bool, int, float, str)
    watched = {name: attributes[name] for name in parameters if isinstance(attributes.get(name), plain)}
    _recipes[key] = (reference, recipe, watched)


def recipe_of(component: Any) -> Recipe | None:
    """The recipe that a component was made with, or None for an object that no registered factory made."""
    reference, recipe, _ = _recipes.get(id(component), (None, None, None))
    return recipe if reference is not None and reference() is component else None


def selector_of(component: Any) -> str:
    """The name of a component in messages: that in experiment files, or its class if no factory made it."""
    recipe = recipe_of(component)
    return recipe.selector if recipe else type(component).__name__


def described(value: Any) -> Any:
    """Replaces everything in a value that a registered factory made by its recipe, at any depth."""
    if type(value) in (list, tuple):
        return type(value)(described(item) for item in value)
    if type(value) is dict:
        return {key: described(item) for key, item in value.items()}
    return recipe_of(value) or value


def check_unchanged(value: Any) -> None:
    """Refuses a component, or a list with one, of which a parameter was set after it was made."""
    for item in value if isinstance(value, (list, tuple)) else [value]:
        before = _recipes[id(item)][2] if recipe_of(item) else {}
        for name, then in before.items():
            now = vars(item).get(name)
            if now is not then and now != then:
                raise ConfigError(
                    f"{selector_of(item)}.{name} was {then!r} when it was made and is {now!r} now, which a run would "
                    f"not record. Make it anew, with {name}={now!r}."
                )


def unique_names(components: Sequence[Any]) -> list[str]:
    """Unique names for components: a repeated name becomes `<name>_2`."""
    recipes = [recipe_of(item) for item in components]
    return numbered(
        recipe.name if recipe else type(item).__name__.lower() for recipe, item in zip(recipes, components, strict=True)
    )


def numbered(names: Iterable[str]) -> list[str]:
    """The same names, of which a repeated one becomes `<name>_2`."""
    unique: list[str] = []
    for first in names:
        name, count = first, 1
        while name in unique:
            count += 1
            name = f"{first}_{count}"
        unique.append(name)
    return unique
