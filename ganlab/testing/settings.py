"""What components are made with where `ganlab plugins check` is given settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ganlab.config.loader import arguments
from ganlab.config.overrides import Override
from ganlab.errors import ConfigError, nearest
from ganlab.plugins.manager import Component

Given = Mapping[str, Any]


def settings(components: Sequence[Component], params: Sequence[str]) -> dict[str, Given]:
    """Reads settings of components that are checked, as an experiment file's and with its checks of types.

    Args:
        components: What is checked.
        params: `NAME=VALUE` each, where the name is `KIND.NAME.PARAMETER`, `NAME.PARAMETER`, or the parameter alone
            where one component is checked. Values may name components, which are made with their defaults.

    Returns:
        By component, `KIND.NAME`, its arguments; recipes stand for components.

    Raises:
        ConfigError: A name is not that of a parameter of these components, or a value is not of its type.
    """
    texts: dict[str, list[str]] = {}
    for param in params:
        said = f"--param {param!r}"
        left, equals, value = (part.strip() for part in param.partition("="))
        if not (equals and left and value):
            raise ConfigError(
                f"{said}: must have the form NAME=VALUE, such as 'constraints.gradient_penalty.weight=1'."
            )
        owner, _, parameter = left.rpartition(".")
        texts.setdefault(_owner(components, owner, said), []).append(Override(f"{parameter}={value}", said))
    made = {f"{component.kind}.{component.name}": component for component in components}
    return {
        selector: arguments(made[selector].kind, made[selector].name, given, "--param")
        for selector, given in texts.items()
    }


def _owner(components: Sequence[Component], owner: str, said: str) -> str:
    names = [f"{component.kind}.{component.name}" for component in components]
    found = [name for name in names if not owner or name == owner or name.partition(".")[2] == owner]
    if len(found) == 1:
        return found[0]
    if not found:
        short = [name.partition(".")[2] for name in names]
        raise ConfigError(
            f"{said}: {owner!r} is not among what is checked.{nearest(owner, [*names, *short])} Checked: "
            f"{', '.join(names) or 'nothing'}."
        )
    raise ConfigError(f"{said}: several components are checked. Say whose it is: {found[0]}.NAME=VALUE, say.")


def maker(component: Component, given: Given) -> Callable[[], Any]:
    """A function that makes a component with arguments, what they name made anew each time."""
    from ganlab.composition import make

    return lambda: component.factory(**make(dict(given)))
