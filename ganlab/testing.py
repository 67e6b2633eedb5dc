"""The conformance kit for plugin authors, by its documented name; it is `ganlab_verify.testing`."""

from importlib import import_module
from typing import Any

_kit = import_module("ganlab_verify.testing")
__all__ = _kit.__all__


def __getattr__(name: str) -> Any:
    return getattr(_kit, name)
