"""The names that experiment files can use: `experiment` and the components of the loaded plugins."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ganlab import composition
from ganlab.config.parser import Binding, Macro, Reference, Statements
from ganlab.errors import ConfigError, GanlabError, nearest
from ganlab.plugins.manager import KINDS, Plugins

EXPERIMENT = "experiment"
LISTS = composition.LISTS


@dataclass(frozen=True)
class Names:
    """The names of one set of plugins."""

    plugins: Plugins
    _parameters: dict[str, Mapping[str, inspect.Parameter]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def selectors(self) -> list[str]:
        """Every complete name of a component."""
        return [f"{kind}.{name}" for kind, name in self.plugins.components]

    def known(self, name: str) -> bool:
        """Whether a name, complete or short, is a component's."""
        return bool(self.matches(name))

    def component(self, name: str) -> str:
        """The complete name of a component named in full or, where that is unique, by its last part."""
        matches = self.matches(name)
        if len(matches) == 1:
            return matches[0]
        if name == EXPERIMENT:
            raise ConfigError(f"{EXPERIMENT!r} is the experiment itself and cannot be one of its parts.")
        if matches:
            raise ConfigError(f"{name!r} is ambiguous: write {' or '.join(matches)}.")
        kind, dot, last = name.partition(".")
        if not dot or "." in last:
            short = [selector.partition(".")[2] for selector in self.selectors]
            meant = self.plugins.known_as(name)
            near = nearest(name, [*self.selectors, *short, EXPERIMENT])
            near = f" Did you mean {' or '.join(map(repr, meant))}?" if meant else near
            raise ConfigError(
                f"Unknown component {name!r}.{near}{self.plugins.absent(broken=True)} Names have the form KIND.NAME; "
                f"'ganlab plugins' lists them.{self.plugins.absent(broken=False)}"
            )
        if kind == EXPERIMENT:
            raise ConfigError(
                f"{name!r} is not a component. Set {EXPERIMENT}.{last} as a whole, and a component's parameters by the "
                "component's own name: KIND.NAME.PARAMETER = ..."
            )
        try:
            self.plugins.component(kind, last)
        except GanlabError as error:
            raise ConfigError(str(error)) from None
        raise AssertionError(name)

    def matches(self, name: str) -> list[str]:
        """The complete names of the components that a name, complete or short, may mean."""
        if name in self.selectors:
            return [name]
        kind, _, rest = name.partition(".")
        if plain := self.plugins.unqualified(kind, rest):
            return [f"{kind}.{plain}"]
        return sorted(selector for selector in self.selectors if selector.partition(".")[2] == name)

    def clash(self, selector: str) -> str:
        """The error message for a component that several plugins offer, if the experiment uses it; otherwise empty."""
        kind, _, name = selector.partition(".")
        return self.plugins.clashes.get((kind, name), "")

    def make(self, selector: str) -> Callable[..., Any]:
        """The callable that takes the settings: `ganlab.experiment` or a plugin's factory."""
        if selector == EXPERIMENT:
            return composition.experiment
        kind, _, name = selector.partition(".")
        component = self.plugins.components.get((kind, name)) or self.plugins.component(kind, name)
        return component.factory.make

    def parameters(self, selector: str) -> Mapping[str, inspect.Parameter]:
        """The settable parameters, in the order of the signature."""
        if selector == EXPERIMENT:
            return composition.parameters()
        if selector not in self._parameters:  # looked for at every line of a file
            self._parameters[selector] = inspect.signature(self.make(selector)).parameters
        return self._parameters[selector]

    def parameter(self, selector: str, name: str) -> inspect.Parameter:
        """The settable parameter of this name, which there must be."""
        parameters = self.parameters(selector)
        if name not in parameters:
            near = nearest(name, parameters) or f" Its parameters: {', '.join(parameters) or 'none'}."
            raise ConfigError(f"{selector} has no parameter {name!r}.{near}")
        return parameters[name]

    def complete(self, statements: Statements) -> list[Binding]:
        """The bindings with every name completed and every parameter checked."""
        for selector, where in statements.blocks:
            self._settable(selector, where)
        return [self._complete(binding) for binding in statements.bindings]

    def _complete(self, binding: Binding) -> Binding:
        try:
            value = self._value(binding.value)
        except ConfigError as error:
            raise ConfigError(f"{binding.where}: {error}") from None
        if not binding.selector:
            return replace(binding, value=value)
        if binding.selector in KINDS and not self.known(binding.selector):
            kind, name = binding.selector, binding.parameter
            raise ConfigError(
                f"{binding.where}: {kind}.{name} = ... sets a component, not a parameter of one. Write "
                f"{kind}.{name}.PARAMETER = ..."
                + (f", or {EXPERIMENT}.{_part(kind)} = ... to choose it." if _part(kind) else ".")
            )
        selector = self._settable(binding.selector, binding.where)
        if not self.clash(selector):
            try:
                self.parameter(selector, binding.parameter)
            except ConfigError as error:
                raise ConfigError(f"{binding.where}: {error}") from None
        return replace(binding, selector=selector, value=value)

    def _settable(self, selector: str, where: str) -> str:
        if selector == EXPERIMENT:
            return selector
        try:
            return self.component(selector)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None

    def _value(self, value: Any) -> Any:
        if isinstance(value, Reference):
            complete = replace(value, selector=self.component(value.selector))
            if not value.called:
                raise ConfigError(f"{value!r} names a component without making it. Write {value!r}().")
            return complete
        if isinstance(value, (list, tuple)):
            return type(value)(self._value(item) for item in value)
        if isinstance(value, dict):
            return {self._value(key): self._value(item) for key, item in value.items()}
        return value


def example(names: Names, part: str) -> str:
    """An example line that sets a part of the experiment."""
    kind = composition.PARTS[part]
    known = sorted(name for name in names.selectors if name.startswith(f"{kind}.") and not names.clash(name))
    complete = [selector for selector in known if not required(names.parameters(selector))]
    reference = f"@{[*complete, *known, f'{kind}.NAME'][0]}()"
    written = f"[{reference}]" if part in LISTS or composition.MAPPINGS.get(part) == "several" else reference
    return f"{EXPERIMENT}.{part} = " + (f"{{'encoder': {written}}}" if part in composition.MAPPINGS else written)


def required(parameters: Mapping[str, inspect.Parameter]) -> list[str]:
    """The names of the parameters without a default."""
    return [name for name, parameter in parameters.items() if parameter.default is inspect.Parameter.empty]


def walk(value: Any) -> list[Reference | Macro]:
    """The references and macros in a value, at any depth."""
    if isinstance(value, (Reference, Macro)):
        return [value]
    if isinstance(value, (list, tuple)):
        return [part for item in value for part in walk(item)]
    if isinstance(value, dict):
        return [part for pair in value.items() for item in pair for part in walk(item)]
    return []


def effective(bindings: Sequence[Binding]) -> Mapping[tuple[tuple[str, ...], str, str], Binding]:
    """The bindings in force, after later ones replaced earlier ones."""
    return {binding.key: binding for binding in bindings}


def _part(kind: str) -> str:
    return next((part for part, of in composition.PARTS.items() if of == kind), "")
