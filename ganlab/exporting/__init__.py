"""Exports from a run: samples of its generator, and the generator itself for use without ganlab."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ganlab.exporting.drawing import Drawn, draw, interpolate
    from ganlab.exporting.exported import export

# Loaded when first used, since they import TensorFlow.
_LAZY = {
    "Drawn": "ganlab.exporting.drawing",
    "draw": "ganlab.exporting.drawing",
    "export": "ganlab.exporting.exported",
    "interpolate": "ganlab.exporting.drawing",
}
FORMATS = ("saved_model", "keras", "onnx")


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'ganlab.exporting' has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)


__all__ = ["FORMATS", "Drawn", "draw", "export", "interpolate"]
