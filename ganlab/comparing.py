"""Comparisons of runs, by their documented name; they are `ganlab_compare`."""

from importlib import import_module
from typing import Any

_application = import_module("ganlab_compare")
__all__ = _application.__all__


def __getattr__(name: str) -> Any:
    return getattr(_application, name)
