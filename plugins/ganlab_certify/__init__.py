"""Certificates: how steep a critic is at most, and how far a generator is from its data."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ganlab_certify.attacks import attacked_constant
    from ganlab_certify.certifying import Certified, certify, certify_model
    from ganlab_certify.distance import CertifiedDistance, certify_distance
    from ganlab_certify.interval import Lipschitz, Samples, W1Interval, w1_interval
    from ganlab_certify.rounded import Rounding
    from ganlab_certify.rungs import Rung, ladder
    from ganlab_certify.two_samples import SampleDistance, sample_distance

# Loaded when first used: some import TensorFlow.
_LAZY = {
    "attacks": ["attacked_constant"],
    "certifying": ["Certified", "certify", "certify_model"],
    "distance": ["CertifiedDistance", "certify_distance"],
    "interval": ["Lipschitz", "Samples", "W1Interval", "w1_interval"],
    "rounded": ["Rounding"],
    "rungs": ["Rung", "ladder"],
    "two_samples": ["SampleDistance", "sample_distance"],
}


def __getattr__(name: str) -> Any:
    for module, names in _LAZY.items():
        if name in names:
            return getattr(importlib.import_module(f"ganlab_certify.{module}"), name)
    raise AttributeError(f"module 'ganlab_certify' has no attribute {name!r}")


__all__ = [
    "Certified",
    "CertifiedDistance",
    "Lipschitz",
    "Rounding",
    "Rung",
    "SampleDistance",
    "Samples",
    "W1Interval",
    "attacked_constant",
    "certify",
    "certify_distance",
    "certify_model",
    "ladder",
    "sample_distance",
    "w1_interval",
]
