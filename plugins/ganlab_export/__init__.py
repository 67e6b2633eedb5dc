"""Exports from a run: samples of its generator, and the generator itself for use without ganlab."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ganlab_export.drawing import Drawn, draw, interpolate
    from ganlab_export.exported import export

# Loaded when first used, since they import TensorFlow.
_LAZY = {
    "Drawn": "ganlab_export.drawing",
    "draw": "ganlab_export.drawing",
    "export": "ganlab_export.exported",
    "interpolate": "ganlab_export.drawing",
}
FORMATS = ("saved_model", "keras", "onnx")


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'ganlab_export' has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)


__all__ = ["FORMATS", "Drawn", "draw", "export", "interpolate"]
