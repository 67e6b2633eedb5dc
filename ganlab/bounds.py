"""Bounds of parameters, as part of their annotations: `weight: Annotated[float, Ge(0)] = 10.0`.

A value out of its bounds is refused where types are checked: in an experiment file, with its file and line, and when
Python makes the component. A bounded number must also be finite, unless a bound includes infinity: `Le(math.inf)`.
Bounds hold for a number itself, also in `Annotated[int, Ge(1)] | None`, and not for the items of a list.

The four classes are those of the package annotated-types. A dependency on it would be one for every plugin, too, in
return for twenty lines. Whoever has it can use its classes here: only the attributes `ge`, `gt`, `le` and `lt` count.
"""

from __future__ import annotations

import math
import operator
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ganlab.support.paths import is_url


@dataclass(frozen=True)
class Ge:
    """At least `ge`."""

    ge: float


@dataclass(frozen=True)
class Gt:
    """Above `gt`."""

    gt: float


@dataclass(frozen=True)
class Le:
    """At most `le`."""

    le: float


@dataclass(frozen=True)
class Lt:
    """Below `lt`."""

    lt: float


@dataclass(frozen=True)
class Local:
    """A path on this machine, which no URL is: `path: Annotated[str, Local()]`."""

    local: bool = True


@dataclass(frozen=True)
class Machine:
    """The name or address of a machine; this one if it is empty or `local`: `address: Annotated[str, Machine()]`.

    A name that is only in the folder of a run or a sweep, which may be a stranger's, is refused.
    """

    machine: bool = True


_RULES: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "ge": ("at least", operator.ge),
    "gt": ("above", operator.gt),
    "le": ("at most", operator.le),
    "lt": ("below", operator.lt),
    "local": ("a path on this machine, not a URL", lambda value, _: not is_url(value)),
}


def violation(value: Any, hint: Any) -> str:
    """The end of an error message that begins with the value: `must be at least 0 and finite.`; empty if it is valid.

    Args:
        value: The value.
        hint: The resolved annotation of its parameter.
    """
    options = list(_options(hint))
    bounded = [option for option in options if option.bounds]
    others = [option for option in options if not option.bounds]
    if is_url(value) and any(option.is_path for option in bounded):
        return f"must be {rule(hint)}."
    if not bounded or any(option.holds(value) for option in bounded) or any(option.takes(value) for option in others):
        return ""
    return f"must be {rule(hint)}."


def rule(hint: Any) -> str:
    """The bounds of an annotation in words: `at least 0 and finite`, `above 0 and below 1, or None`; empty for none."""
    options = list(_options(hint))
    if not any(option.bounds for option in options):
        return "a machine's name" if has_mark(hint, "machine") else ""
    return ", or ".join(str(option) for option in sorted(options, key=lambda option: not option.bounds))


def without(hint: Any) -> Any:
    """An annotation without its bounds: `float | None` for `Annotated[float, Gt(0)] | None`."""
    kinds = [option.kind for option in _options(hint)]
    return typing.Union[tuple(kinds)] if rule(hint) else hint  # noqa: UP007 (of a list)


def has_mark(hint: Any, mark: str) -> bool:
    """Whether an annotation has the mark `Machine` ("machine") or `Local` ("local")."""
    marks, inner = getattr(hint, "__metadata__", ()), typing.get_args(hint)
    return any(getattr(each, mark, False) is True for each in marks) or any(has_mark(each, mark) for each in inner)


@dataclass(frozen=True)
class _Option:
    """One of the types of a union, with its bounds by name."""

    kind: Any
    bounds: tuple[tuple[str, Any], ...]

    def holds(self, value: Any) -> bool:
        """Whether a number is within the bounds, or a path is one."""
        if self.is_path:  # a URL is refused before
            return True
        if isinstance(value, bool):
            return False
        try:
            if self.kind is int:
                operator.index(value)
            elif not math.isfinite(value) and value not in self._infinities():
                return False
            return all(_RULES[name][1](value, bound) for name, bound in self.bounds)
        except (TypeError, ValueError, OverflowError):  # not a number, or an array of them
            return False

    def takes(self, value: Any) -> bool:
        """Whether a value has this type. One that is not a number is left to the check of types."""
        if typing.get_origin(self.kind) is typing.Literal:
            return value in typing.get_args(self.kind) or not isinstance(value, (int, float))
        if isinstance(self.kind, type) and isinstance(value, self.kind):
            return True
        return not isinstance(value, (int, float))

    @property
    def is_path(self) -> bool:
        """Whether a text is a path."""
        return ("local", True) in self.bounds

    def _infinities(self) -> list[Any]:
        return [bound for name, bound in self.bounds if name in ("ge", "le") and math.isinf(bound)]

    def __str__(self) -> str:
        if not self.bounds:
            choices = typing.get_args(self.kind) if typing.get_origin(self.kind) is typing.Literal else ()
            named = "None" if self.kind is type(None) else getattr(self.kind, "__name__", str(self.kind))
            return " or ".join(map(repr, choices)) or named
        if self.is_path:
            return _RULES["local"][0]
        words = [f"{_RULES[name][0]} {_written(bound)}" for name, bound in self.bounds if not math.isinf(bound)]
        sides = {name in ("ge", "gt") for name, bound in self.bounds if not math.isinf(bound)}
        if self.kind is int:
            whole = "a whole number" + (" of" if words and words[0].startswith("at ") else "")
            return " ".join([whole, " and ".join(words)])
        if len(sides) < 2 and not self._infinities():
            words.append("finite")
        return " and ".join(words)


def _options(hint: Any, marks: tuple[Any, ...] = ()) -> Iterator[_Option]:
    if typing.get_origin(hint) is typing.Annotated:
        yield from _options(hint.__origin__, (*marks, *hint.__metadata__))
    elif typing.get_origin(hint) in (typing.Union, types.UnionType):
        for option in typing.get_args(hint):
            yield from _options(option, marks)
    else:
        found = [(name, getattr(mark, name, None)) for mark in marks for name in _RULES]
        bounds = tuple((name, bound) for name, bound in found if isinstance(bound, (int, float)))
        yield _Option(hint, () if hint is type(None) else bounds)


def _written(bound: float) -> str:
    if isinstance(bound, int) and bound >= 2**16 and bound.bit_count() == 1:
        return f"2**{bound.bit_length() - 1}"
    return f"{bound:,}" if isinstance(bound, int) and bound >= 10**6 else f"{bound:g}"
