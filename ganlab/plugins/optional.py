"""Optional parameters: a plugin's method receives those that it names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


def takes(method: Callable[..., Any], name: str) -> bool:
    """Whether a method has a parameter of this name."""
    return name in _names(method, 0)


def call(method: Callable[..., Any], *required: Any, **optional: Any) -> Any:
    """Calls a method with the required arguments, and with those optional ones that it has further parameters for.

    So a contract can offer more without breaking the methods written before, as pluggy's hooks do.
    """
    names = _names(method, len(required))
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
