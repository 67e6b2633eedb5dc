"""Resolves the bindings of experiment files, with gin's scopes, macros and references, into recipes.

The semantics are gin's own, implemented without gin's global registry and configuration, so that reading a file has no
side effects. An unscoped binding is inherited by every scope, and one of an outer scope by its inner scopes. `@a/f()`
is made in scope `a` only, `@f()` in the scope of the component that refers to it, and a macro's value in the scope of
the macro's name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ganlab.config.parser import ONLY_IN_PYTHON, Binding, Macro, Reference
from ganlab.config.registry import EXPERIMENT, Names, effective, required
from ganlab.errors import ConfigError, nearest
from ganlab.plugins.recipes import Recipe

Scope = tuple[str, ...]

# Nested macros can expand to more values than fit in memory, and components can form uselessly long chains.
_DEEPEST, _MOST_VALUES = 32, 100_000

_PLAIN = (str, bytes, int, float, type(None))


class Resolver:
    """Resolves one list of bindings.

    Attributes:
        names: The names that can be used.
        bindings: The bindings in force, by key.
        used: The bindings that reached the experiment.
        reached: Each component that was reached, with the scopes it was reached in.
        arguments: For every parameter of the experiment, the binding that set it.
        uses: Each component's selector and scope, by the path of its use, as `render` names it.
    """

    def __init__(
        self,
        names: Names,
        bindings: Sequence[Binding],
        *,
        strict: bool,
        objects: Mapping[str, Any] | None = None,
        apart: Collection[str] = (),
    ) -> None:
        """Takes names and bindings, of which later ones replace earlier ones.

        Unless `strict`, missing values are left out, to find what a part of the sources reaches. `objects` are the
        values of macros that stand for values of Python; `apart` are the paths of uses with a scope of their own, named
        like the path, inside that of the file.
        """
        self.names = names
        self._objects = objects or {}
        self.bindings = effective(bindings)
        self.used: set[Binding] = set()
        self.reached: dict[str, set[Scope]] = {}
        self.arguments: dict[str, Binding] = {}
        self.uses: dict[str, tuple[str, Scope]] = {}
        self._strict, self._apart = strict, apart
        self._making: list[tuple[str, Scope]] = []
        self._counted = 0

    def experiment(self) -> Recipe:
        """The recipe of the experiment."""
        self.arguments = self._standing(EXPERIMENT, ())
        return Recipe("", EXPERIMENT, self._arguments(EXPERIMENT, (), "", ""))

    def value(self, binding: Binding) -> Any:
        """The value of one binding, resolved in its own scope only."""
        return self._value(binding.value, binding.scope, binding, "")

    def macro(self, name: str, where: str) -> Binding:
        """The definition of a macro."""
        definition = self.bindings.get(((), "", name))
        if definition is None:
            macros = [parameter for _, selector, parameter in self.bindings if not selector]
            raise ConfigError(
                f"{where}: the macro %{name} is not defined.{nearest(name, macros)} Add a line {name} = VALUE."
            )
        return definition

    def count(self, depth: int, where: str) -> None:
        """Counts one value of a macro or a component, to which `depth` others lead; too many are always refused."""
        self._counted += 1
        if depth > _DEEPEST:
            raise ConfigError(f"{where}: macros or components are nested more than {_DEEPEST} deep. Merge some.")
        if self._counted > _MOST_VALUES:
            raise ConfigError(
                f"{where}: macros and components expand to more than {_MOST_VALUES} values. Use them less often."
            )

    def _standing(self, selector: str, scope: Scope) -> dict[str, Binding]:
        standing: dict[str, Binding] = {}
        for depth in range(len(scope) + 1):
            for parameter in self.names.parameters(selector):
                binding = self.bindings.get((scope[:depth], selector, parameter))
                if binding is not None:
                    standing[parameter] = binding
        return {name: standing[name] for name in self.names.parameters(selector) if name in standing}

    def _arguments(self, selector: str, scope: Scope, where: str, path: str) -> dict[str, Any]:
        self.reached.setdefault(selector, set()).add(scope)
        standing = self._standing(selector, scope)
        if self._strict and selector != EXPERIMENT:
            self._check_complete(selector, standing, where)
        self.used.update(standing.values())
        return {
            name: self._value(binding.value, scope, binding, _inside(path, name)) for name, binding in standing.items()
        }

    def _check_complete(self, selector: str, standing: dict[str, Binding], where: str) -> None:
        for name in required(self.names.parameters(selector)):
            if name not in standing:
                raise ConfigError(f"{where}: {selector} needs {name}. Add a line {selector}.{name} = ...")

    def _value(self, value: Any, scope: Scope, binding: Binding, path: str) -> Any:
        if self._making:
            self.count(len(self._making), binding.where)
        if isinstance(value, Reference):
            return self._guarded(value.selector, value.scope or scope, binding.where, path)
        if isinstance(value, Macro):
            if value.only_in_python:
                return self._object(value, binding)
            return self._macro_value(value, binding.where, path)
        if isinstance(value, (list, tuple)):
            return type(value)(self._items(value, scope, binding, path))
        if isinstance(value, dict):
            keys = check_keys([self._value(key, scope, binding, path) for key in value], binding.where)
            return dict(zip(keys, self._items(value.values(), scope, binding, path), strict=True))
        return value

    def _items(self, items: Iterable[Any], scope: Scope, binding: Binding, path: str) -> list[Any]:
        return [self._value(item, scope, binding, _inside(path, number)) for number, item in enumerate(items, start=1)]

    def _object(self, macro: Macro, binding: Binding) -> Any:
        if macro.name in self._objects:
            return self._objects[macro.name]
        if not self._strict:
            return macro
        cls = macro.name.removeprefix(ONLY_IN_PYTHON)
        raise ConfigError(
            f"{binding.where}: {binding.name} had a value that was made in Python, {cls!r}, which no file can make "
            f"again. In Python, pass the experiment that it belongs to: experiment=... For the command line, train "
            f"with a component of a ganlab_plugins.py in its place, or set {binding.name} anew with --param."
        )

    def _guarded(self, selector: str, scope: Scope, where: str, path: str) -> Recipe | None:
        scope = (*scope, path) if path in self._apart else scope
        self.uses[path] = selector, scope
        if (selector, scope) in self._making:
            if self._strict:
                raise ConfigError(f"{where}: {selector} would be made from itself, endlessly. Use another component.")
            return None
        if self._strict and (clash := self.names.clash(selector)):
            raise ConfigError(f"{where}: {clash}")
        self._making.append((selector, scope))
        try:
            kind, _, name = selector.partition(".")
            return Recipe(kind, name, self._arguments(selector, scope, where, path))
        finally:
            self._making.pop()

    def _macro_value(self, macro: Macro, where: str, path: str) -> Any:
        try:
            binding = self.macro(macro.name, where)
        except ConfigError:
            if self._strict:
                raise
            return None
        scope = tuple(macro.name.split("/"))
        if ("", scope) in self._making:
            if self._strict:
                raise ConfigError(f"{where}: the macro %{macro.name} is defined by itself. Give it a value of its own.")
            return None
        self.used.add(binding)
        self._making.append(("", scope))
        try:
            return self._value(binding.value, scope, binding, path)
        finally:
            self._making.pop()


def _inside(path: str, name: str | int) -> str:
    return f"{path}_{name}" if path else str(name)


def check_keys(keys: list[Any], where: str) -> list[Any]:
    """Checks the keys of a dict, with macros resolved: each must be a plain value."""
    for key in keys:
        if not all(isinstance(part, _PLAIN) for part in (key if isinstance(key, tuple) else (key,))):
            raise ConfigError(f"{where}: {key!r} cannot be a key of a dict. Write text or a number.")
    return keys
