"""Checks values from experiment files against the annotations of their parameters."""

from __future__ import annotations

import contextlib
import inspect
import math
import typing
from collections.abc import Callable
from typing import Any, Literal

from ganlab.bounds import without
from ganlab.errors import nearest
from ganlab.plugins.annotations import UNKNOWN, describe, resolve, type_name


def stub(make: Callable[..., Any]) -> Any:
    """An object of the type that a factory makes, without calling the factory; UNKNOWN if the type is unknown."""
    kind = make if isinstance(make, type) else resolve(inspect.signature(make).return_annotation, make)
    if not isinstance(kind, type) or kind is inspect.Signature.empty:
        return UNKNOWN
    try:
        return object.__new__(kind)
    except TypeError:
        return UNKNOWN


def fits(value: Any, hint: Any) -> bool:
    """Whether a value has the annotated type.

    An int fits float, but a bool fits neither: `steps = True` is a mistake. An unresolvable annotation fits any value.
    """
    import typeguard

    if hint is UNKNOWN or any(part is UNKNOWN for part in _parts(value)):
        return True
    if any(isinstance(part, bool) for part in _parts(value)) and not _takes_bool(hint):
        return False
    try:
        typeguard.check_type(
            value,
            hint,
            forward_ref_policy=typeguard.ForwardRefPolicy.IGNORE,
            collection_check_strategy=typeguard.CollectionCheckStrategy.ALL_ITEMS,
        )
    except typeguard.TypeCheckError:
        return False
    except Exception:  # an annotation that is not a type is the plugin's responsibility
        return True
    return True


def complaint(value: Any, shown: str, hint: Any) -> str:
    """The end of the error for a value that does not fit: "must be int, not str. Write 64."."""
    if typing.get_origin(hint) is Literal:
        choices = typing.get_args(hint)
        words = [choice for choice in choices if isinstance(choice, str)]
        near = nearest(value, words) if isinstance(value, str) else ""
        return f"must be one of {', '.join(map(repr, choices))}.{near}"
    # In a container an item may be wrong; the value in the message shows it.
    other = "" if isinstance(value, (list, tuple, dict)) else f", not {type_name(value)}"
    return f"must be {describe(hint)}{other}.{_remedy(value, shown, hint)}"


def _remedy(value: Any, shown: str, hint: Any) -> str:
    if isinstance(value, float) and math.isfinite(value) and value.is_integer() and fits(int(value), hint):
        return f" Write {int(value)}."
    if isinstance(value, str):
        for number in (int, float):
            with contextlib.suppress(ValueError, OverflowError):
                if fits(made := number(value), hint) and math.isfinite(made):  # nan and inf are no literals
                    return f" Write {value.strip()} without quotes."
    if fits([value], hint):
        return f" Write [{shown}]."
    if fits(shown, hint):
        return f" Write {shown!r} in quotes."
    return ""


def _parts(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [part for item in value for part in _parts(item)]
    if isinstance(value, dict):
        return [part for pair in value.items() for item in pair for part in _parts(item)]
    return [value]


def _takes_bool(hint: Any) -> bool:
    hint = without(hint)
    if hint in (int, float, complex, str, bytes, type(None)):
        return False
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is Literal:
        return any(isinstance(choice, bool) for choice in arguments)
    return any(_takes_bool(argument) for argument in arguments) if arguments else True
