"""Annotations of the parameters of plugins' factories, resolved without TensorFlow."""

from __future__ import annotations

import inspect
import numbers
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from ganlab import bounds
from ganlab.support.paths import is_url


class _Unknown:
    """Stands for a type or value that is unknown without TensorFlow and is not checked."""


UNKNOWN = _Unknown()


def annotation(make: Callable[..., Any], parameter: str) -> Any:
    """The resolved annotation of a factory's parameter; UNKNOWN if there is none or it needs TensorFlow."""
    hint = inspect.signature(make).parameters[parameter].annotation
    if hint is inspect.Parameter.empty:
        return UNKNOWN
    return resolve(hint, make)


def broken_bound(make: Callable[..., Any], parameter: str, value: Any) -> str:
    """The end of an error message that begins with a value out of the bounds of its parameter; empty if it is valid.

    A value that is no number is answered with the type that it must have.
    """
    default = inspect.signature(make).parameters[parameter].default
    if value is UNKNOWN or (type(value) is type(default) and value == default):
        return ""
    hint = annotation(make, parameter)
    problem = bounds.violation(value, hint)
    if problem and not is_url(value) and (isinstance(value, bool) or not isinstance(value, numbers.Real)):
        return f"must be {describe(hint)}, not {type_name(value)}."
    return problem


def describe(hint: Any) -> str:
    """An annotation in readable form, without bounds: `int`, `list[int] | None`, `'a' or 'b'`."""
    hint = bounds.without(hint)
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(map(repr, typing.get_args(hint)))
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " | ".join(describe(option) for option in typing.get_args(hint))
    if isinstance(hint, type) and not typing.get_args(hint):
        return "None" if hint is type(None) else hint.__name__
    return inspect.formatannotation(hint).replace("collections.abc.", "").replace("typing.", "")


def type_name(value: Any) -> str:
    """The type of a value, for messages."""
    return "None" if value is None else type(value).__name__


def takes_number(make: Callable[..., Any], parameter: str) -> bool:
    """Whether a parameter is annotated as a float, among other types perhaps."""
    hint = bounds.without(annotation(make, parameter))
    return hint is float or float in typing.get_args(hint)


def takes_alone(make: Callable[..., Any], parameter: str, kind: type) -> bool:
    """Whether a parameter is annotated as of a type, or as of it or None."""
    hint = annotation(make, parameter)
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return {_plain(each) for each in (typing.get_args(hint) if union else [hint])} - {type(None)} == {kind}


def _plain(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint


def without_numpy(value: Any) -> Any:
    """A number of numpy as one of Python, whose type is checked and recorded; any other value is returned as it is."""
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0 else value


def resolve(hint: Any, make: Callable[..., Any]) -> Any:
    """An annotation of a factory, evaluated if it is text; UNKNOWN if that fails."""
    if not isinstance(hint, str):
        return hint
    function: Any = inspect.unwrap(make)
    if isinstance(function, type):
        function = inspect.unwrap(function.__init__)  # type: ignore[misc]
    module = sys.modules.get(getattr(make, "__module__", ""), None)
    known: Mapping[str, Any] = getattr(function, "__globals__", None) or vars(module or types.ModuleType(""))
    try:
        # An annotation is the plugin's own code, whose module has already run. TensorFlow is left out, because looking
        # up a name would import the lazy module.
        return eval(hint, {name: item for name, item in known.items() if not _is_tensorflow(item)})
    except Exception:
        return UNKNOWN


def _is_tensorflow(item: Any) -> bool:
    return isinstance(item, types.ModuleType) and item.__name__.partition(".")[0] in ("tensorflow", "keras")
