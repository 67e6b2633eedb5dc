"""Reads the settings of `ganlab plugins check`, which components are then made with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ganlab.commands import Component, Override, arguments
from ganlab.errors import ConfigError, nearest

Given = Mapping[str, Any]


def settings(components: Sequence[Component], params: Sequence[str]) -> dict[str, Given]:
    """Reads settings of the components under test, as in an experiment file and with the same type checks.

    Args:
        components: The components under test.
        params: `NAME=VALUE` each, where the name is `KIND.NAME.PARAMETER`, `NAME.PARAMETER`, or the parameter alone
            if only one component is checked. Values may name components, which are made with their defaults.

    Returns:
        The arguments of each component by `KIND.NAME`; recipes stand for components.

    Raises:
        ConfigError: A name is not a parameter of these components, or a value has the wrong type.
    """
    texts: dict[str, list[str]] = {}
    for param in params:
        option = f"--param {param!r}"
        left, equals, value = (part.strip() for part in param.partition("="))
        if not (equals and left and value):
            raise ConfigError(
                f"{option}: must have the form NAME=VALUE, for example 'constraints.gradient_penalty.weight=1'."
            )
        owner, _, parameter = left.rpartition(".")
        texts.setdefault(_owner(components, owner, option), []).append(Override(f"{parameter}={value}", option))
    made = {f"{component.kind}.{component.name}": component for component in components}
    return {
        selector: arguments(made[selector].kind, made[selector].name, given, "--param")
        for selector, given in texts.items()
    }


def _owner(components: Sequence[Component], owner: str, option: str) -> str:
    names = [f"{component.kind}.{component.name}" for component in components]
    matching = [name for name in names if not owner or name == owner or name.partition(".")[2] == owner]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        short = [name.partition(".")[2] for name in names]
        raise ConfigError(
            f"{option}: {owner!r} is not among the components to check.{nearest(owner, [*names, *short])} Checked: "
            f"{', '.join(names) or 'nothing'}."
        )
    raise ConfigError(f"{option}: several components are checked. Name one, for example {matching[0]}.NAME=VALUE.")


def maker(component: Component, given: Given) -> Callable[[], Any]:
    """Returns a function that makes a component with arguments; components among these are made anew each time."""
    from ganlab.engine import make

    return lambda: component.factory(**make(dict(given)))
