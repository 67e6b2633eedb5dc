"""Samples of a run's generator, and the generator for use without ganlab; it is `ganlab_export`."""

from importlib import import_module
from typing import Any

_exports = import_module("ganlab_export")
__all__ = _exports.__all__


def __getattr__(name: str) -> Any:
    return getattr(_exports, name)
