"""The constraints that take part: those that plugins offer, whoever wrote them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ganlab.commands import Component, Plugins
from ganlab.errors import PluginError

_KIND = "constraints"


@dataclass(frozen=True)
class Contestant:
    """A constraint that takes part.

    Attributes:
        name: Its name after `constraints.` in experiment files.
        origin: The distribution that it is from, with its version, or the file.
        defaults: The defaults of its parameters that are numbers.
    """

    name: str
    origin: str
    defaults: Mapping[str, float]


def contestants(plugins: Plugins, names: Sequence[str] = ()) -> list[Contestant]:
    """The constraints of a benchmark, in the order of their names, or as named.

    Args:
        plugins: The plugins in use.
        names: The constraints; none for every installed one.

    Raises:
        PluginError: A name is unknown, or there are no constraints.
    """
    if names:
        named = [_contestant(plugins.component(_KIND, name)) for name in names]
        return list({each.name: each for each in named}.values())
    installed = [
        component
        for (kind, name), component in sorted(plugins.components.items(), key=lambda item: item[0])
        if kind == _KIND and (kind, name) not in plugins.clashes
    ]
    if not installed:
        raise PluginError(f"No constraint is installed, so there is nothing to compare.{plugins.absent()}")
    return [_contestant(component) for component in installed]


def _contestant(component: Component) -> Contestant:
    parameters = component.factory.signature.parameters.values()
    numbers = {
        parameter.name: parameter.default
        for parameter in parameters
        if isinstance(parameter.default, (int, float)) and not isinstance(parameter.default, bool)
    }
    return Contestant(component.name, component.plugin.origin, numbers)
