"""Steps of a run once more: training is a function of the seed and the step, so any of them can be made again."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ganlab_time_travel.conditions import parse_condition

if TYPE_CHECKING:
    from ganlab_time_travel.bisecting import Onset, bisect
    from ganlab_time_travel.forking import fork
    from ganlab_time_travel.replaying import Replayed, replay

# Loaded when first used, since they import TensorFlow.
_LAZY = {
    "Onset": "ganlab_time_travel.bisecting",
    "Replayed": "ganlab_time_travel.replaying",
    "bisect": "ganlab_time_travel.bisecting",
    "fork": "ganlab_time_travel.forking",
    "replay": "ganlab_time_travel.replaying",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'ganlab_time_travel' has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)


__all__ = ["Onset", "Replayed", "bisect", "fork", "parse_condition", "replay"]
