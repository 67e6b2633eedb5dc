"""Distances of optimal transport between samples, the truth that a critic's estimate is compared with.

Uses numpy and scipy in float64; no TensorFlow. `w1_interval`, which bounds the distance between what samples were drawn
from, and its types are those of the application `ganlab_certify`.
"""

from importlib import import_module
from typing import Any

from ganlab.transport.exact import dual_potentials, exact_w1
from ganlab.transport.points import rows
from ganlab.transport.sliced import sliced_wasserstein

_OF_APPLICATION = ("Lipschitz", "Samples", "W1Interval", "w1_interval")

__all__ = [
    "Lipschitz",
    "Samples",
    "W1Interval",
    "dual_potentials",
    "exact_w1",
    "rows",
    "sliced_wasserstein",
    "w1_interval",
]


def __getattr__(name: str) -> Any:
    if name not in _OF_APPLICATION:
        raise AttributeError(f"module 'ganlab.transport' has no attribute {name!r}")
    return getattr(import_module("ganlab_certify"), name)
