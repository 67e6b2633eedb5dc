"""Describes values that were made in Python, so that a run can tell whether it is given the same ones again."""

from __future__ import annotations

import enum
import functools
import inspect
import types
from collections.abc import Iterable, Mapping
from typing import Any

from ganlab.interfaces import Dataset
from ganlab.plugins.recipes import Recipe, recipe_of
from ganlab.support.hashing import digest

_LONGEST, _SHOWN = 200, 120
_DEEPEST = 4
_ARRAY_BYTES = 1 << 26  # of larger arrays, a part is hashed
_DIGITS = 8


def summary(value: Any) -> str:
    """The class of a value and the arguments that it keeps: `PairSlope(weight=1.0)`.

    Two values with different texts differ; two with the same text may differ in what their constructors do not take.
    Names of layers and addresses, which differ from one process to another, are not in it.
    """
    text = _text(value, ())
    return text if len(text) <= _LONGEST else f"{text[:_SHOWN]}... {digest(text.encode())[:_DIGITS]}"


def _text(value: Any, within: tuple[int, ...]) -> str:
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, enum.Enum)):
        return repr(value)
    inner = (*within, id(value))
    try:
        name, arguments = _parts(value)
        if id(value) in within or len(inner) > _DEEPEST:
            return name
        return f"{name}({', '.join(_argument(key, item, inner) for key, item in arguments)})"
    except Exception:  # code of plugins, in properties for example
        return type(value).__name__


def _argument(name: Any, value: Any, within: tuple[int, ...]) -> str:
    text = _text(value, within)
    return text if name is None else f"{name}={text}"


def _parts(value: Any) -> tuple[str, Iterable[tuple[Any, Any]]]:
    """The name of a value, and what distinguishes it from others of that name."""
    recipe = value if isinstance(value, Recipe) else recipe_of(value)
    if recipe is not None:
        return recipe.name, recipe.arguments.items()
    if isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType)):
        return value.__name__, ()
    if isinstance(value, types.FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        defaults = {**{str(i): item for i, item in enumerate(value.__defaults__ or ())}, **(value.__kwdefaults__ or {})}
        return value.__name__, [*((key, cell.cell_contents) for key, cell in cells), *defaults.items()]
    if isinstance(value, types.MethodType):
        return value.__name__, [(None, value.__self__)]
    if isinstance(value, functools.partial):
        return "partial", [*((None, item) for item in (value.func, *value.args)), *value.keywords.items()]
    name = type(value).__name__
    if isinstance(value, Mapping):
        return name, [(_text(key, ()), item) for key, item in value.items()]
    if isinstance(value, (set, frozenset)):
        return name, [(None, item) for item in sorted(value, key=lambda item: _text(item, ()))]
    if isinstance(value, (list, tuple)):
        return name, [(None, item) for item in value]
    if hasattr(value, "__array__") and hasattr(value, "dtype"):
        return _of_array(name, value)
    if hasattr(value, "apply_gradients") and hasattr(value, "get_config"):  # an optimizer of Keras
        return name, [(key, item) for key, item in value.get_config().items() if key != "name"]
    attributes = vars(value) if hasattr(value, "__dict__") else {}
    parameters = [key for key in inspect.signature(type(value)).parameters if key != "name"]
    places = [(key, key if key in attributes else f"_{key}") for key in parameters]
    arguments = [(key, attributes[place]) for key, place in places if place in attributes]
    # The examples of a dataset have a fingerprint of their own.
    plain = (bool, int, float, str, type(None))
    return name, [each for each in arguments if not isinstance(value, Dataset) or isinstance(each[1], plain)]


def _of_array(name: str, value: Any) -> tuple[str, Iterable[tuple[Any, Any]]]:
    import numpy as np

    array = np.asarray(value)
    every = -(-array.nbytes // _ARRAY_BYTES) or 1
    content = digest(array.reshape(-1)[::every])[:_DIGITS]
    return f"{name}[{', '.join(map(str, (*array.shape, array.dtype)))}]", [("content", content)]
