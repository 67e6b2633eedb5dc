"""Optional parameters: a plugin's method receives those that it names."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import Any

# The package of the classes that say what methods take.
_CONTRACT = "ganlab.interfaces"


def takes(method: Callable[..., Any], name: str) -> bool:
    """Whether a method has a parameter of this name."""
    return name in _names(method, 0)


def call(method: Callable[..., Any], *required: Any, **optional: Any) -> Any:
    """Calls a method with the required arguments, and with those optional ones that it has further parameters for.

    So a contract can offer more without breaking the methods written before, as pluggy's hooks do.

    Raises:
        TypeError: The method takes fewer than the required arguments or others in their places, or spells an optional
            one differently.
    """
    names = _names(method, len(required))
    owner: Any = type(getattr(method, "__self__", None))
    if misfit := _misfit(getattr(method, "__func__", None), owner, len(required), frozenset(optional)):
        raise TypeError(misfit)
    return method(*required, **{name: value for name, value in optional.items() if name in names})


def _names(method: Callable[..., Any], count: int) -> frozenset[str]:
    """The names of the parameters that remain after a number of positional arguments."""
    function = getattr(method, "__func__", None)
    return _parameters(method, count) if function is None else _parameters(function, count + 1)


@functools.lru_cache(maxsize=1024)
def _parameters(function: Callable[..., Any], count: int) -> frozenset[str]:
    parameters = list(inspect.signature(function).parameters.values())
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    left = [*positional[count:], *(p for p in parameters if p.kind is p.KEYWORD_ONLY)]
    return frozenset(p.name for p in left if p.kind is not p.POSITIONAL_ONLY)


@functools.lru_cache(maxsize=1024)
def _misfit(function: Callable[..., Any] | None, owner: type, count: int, optional: frozenset[str]) -> str:
    """How a method's parameters differ from those that it is called with; empty if they do not."""
    name = getattr(function, "__name__", "")
    bases = (vars(base)[name] for base in owner.__mro__ if base.__module__.startswith(_CONTRACT) and name in vars(base))
    base = next((base for base in bases if callable(base)), None)
    if function is None or base is None:
        return ""
    own, asked = (list(inspect.signature(each).parameters.values())[1:] for each in (function, base))
    given, wanted = [p.name for p in own][:count], [p.name for p in asked][:count]
    mixed = given != wanted and (set(given) == set(wanted) or not optional.isdisjoint(given))
    if any(p.kind is p.VAR_POSITIONAL for p in own) or (len(given) == count and not mixed):
        # With a default, a misspelt name would keep it, and nobody would see why.
        names = {p.name for p in own}
        for name in sorted(names - optional - set(given)):
            if like := difflib.get_close_matches(name, optional - names, 1, 0.85):
                return f"its parameter {name!r} is never passed. Did you mean {like[0]!r}?"
        return ""
    return f"it takes ({', '.join(p.name for p in own)}), and must take ({', '.join(wanted)}) in this order"
