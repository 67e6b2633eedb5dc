"""Makes experiments and their parts from recipes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ganlab.composition.experiments import Experiment, check_settings, experiment
from ganlab.composition.parts import PARTS
from ganlab.interfaces import Schedule
from ganlab.plugins.manager import component
from ganlab.plugins.recipes import Recipe, recipe_of


def compose(recipe: Recipe) -> Experiment:
    """Makes the experiment that a recipe describes, its strategy first.

    Raises:
        GanlabError: A part cannot be made, or they do not fit together.
    """
    check_settings(recipe.arguments)
    order = sorted(recipe.arguments, key=lambda name: list(PARTS).index(name) if name in PARTS else len(PARTS))
    parts = {name: make(recipe.arguments[name]) for name in order}
    return experiment(**parts)


def schedules(composed: Experiment) -> dict[str, Schedule]:
    """The schedules of an experiment's parameters, by the tag that their values are logged under."""
    by_tag: dict[str, Schedule] = {}
    for name, item in (*composed.components(), ("critic_steps", composed.critic_steps)):
        by_tag |= {f"schedules/{tag}": make(inner) for tag, inner in _scheduled(name, recipe_of(item))}
    return by_tag


def _scheduled(path: str, value: Any) -> Iterator[tuple[str, Recipe]]:
    """The recipes of schedules inside a value, each with the names that lead to it."""
    if isinstance(value, Recipe):
        if value.kind == "schedules":
            yield path, value
        for name, argument in value.arguments.items():
            yield from _scheduled(f"{path}/{name}", argument)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value, start=1):
            yield from _scheduled(f"{path}/{i}", item)


def make(value: Any) -> Any:
    """Makes the component that a recipe describes, inner recipes first; looks inside lists, tuples and dicts."""
    if isinstance(value, Recipe):
        factory = component(value.kind, value.name)
        return factory(**{name: make(argument) for name, argument in value.arguments.items()})
    if isinstance(value, (list, tuple)):
        return type(value)(make(item) for item in value)
    if isinstance(value, dict):
        return {name: make(item) for name, item in value.items()}
    return value
