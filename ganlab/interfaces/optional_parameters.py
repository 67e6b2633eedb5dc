"""Methods that may take optional parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def takes_optional(method: Callable[..., T]) -> Callable[..., T]:
    """Marks a method of a role whose overrides may take the optional parameters that its class describes.

    ganlab passes these by name to a method that has them. The method stays as it is; only to type checkers does it take
    any arguments, so that they accept such an override.
    """
    return method
