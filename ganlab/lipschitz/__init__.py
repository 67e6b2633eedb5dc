"""Operator norms and certificates: how far a critic can stretch a distance, estimated and proved.

`operators` returns the linear map that each kernel of a critic performs. `spectral_norm` estimates its norm from below,
differentiably, anywhere; `norm_bound` bounds it from above, on the host. `certificate` multiplies such bounds into one
for the whole critic. `ladder`, which tries tighter ones, and `attacked_constant`, which looks for steep places, are
those of the application `ganlab_certify`.
"""

from importlib import import_module
from typing import Any

from ganlab.lipschitz.bounds import norm_bound
from ganlab.lipschitz.certificates import Certificate, certificate
from ganlab.lipschitz.constants import ACTIVATION_SLOPES
from ganlab.lipschitz.iteration import spectral_norm
from ganlab.lipschitz.operators import (
    Convolution,
    DepthwiseConvolution,
    Operator,
    ReshapedMatrix,
    TransposedConvolution,
    operators,
)

_OF_APPLICATION = ("Rung", "attacked_constant", "ladder")

__all__ = [
    "ACTIVATION_SLOPES",
    "Certificate",
    "Convolution",
    "DepthwiseConvolution",
    "Operator",
    "ReshapedMatrix",
    "Rung",
    "TransposedConvolution",
    "attacked_constant",
    "certificate",
    "ladder",
    "norm_bound",
    "operators",
    "spectral_norm",
]


def __getattr__(name: str) -> Any:
    if name not in _OF_APPLICATION:
        raise AttributeError(f"module 'ganlab.lipschitz' has no attribute {name!r}")
    return getattr(import_module("ganlab_certify"), name)
